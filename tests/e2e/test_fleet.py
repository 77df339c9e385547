# SPDX-License-Identifier: Apache-2.0
"""Many agents and few worker IDs: who keeps what, and who waits."""
import concurrent.futures
import json
import os
import re
import subprocess
import time

import pytest

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import clean_env, firn, program
from firnlab.jute import EPHEMERAL, SEQUENTIAL
from firnlab.load import check, numbers


def all_serving(agents, seconds=60):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda a: a.serving(seconds), agents))


def full_realm(lab, conf, hosts=None):
    """Sixteen agents in the sixteen IDs of a layout of 4 worker bits."""
    realm = lab.realm('--first', '--bits', '41/4/12')
    agents = [lab.agent(realm, hosts=hosts, conf=conf).start()
              for _ in range(16)]
    all_serving(agents)
    return realm, agents


def test_sixteen_agents_lose_their_sessions_and_keep_their_ids(lab):
    """A cut of 15 s expires all sessions: nobody refuses, every agent keeps
    its ID, sixteen nodes are created."""
    proxy = lab.proxy()
    conf = dict(QUICK, reserve_ms=40000)
    realm, agents = full_realm(lab, conf, proxy.hosts)
    workers = realm.settles(agents, 60)
    assert sorted(workers) == list(range(16))
    for agent in agents:
        agent.reserves(30000)
    loads = [lab.load(a, rate=50, timeout=5000) for a in agents]
    for load in loads:
        load.takes(10)
    made = realm.claims_made()
    proxy.hole()
    wait.until(lambda: realm.claims() == [], 14, 'all sessions expire')
    end = time.monotonic() + 15
    wait.until(lambda: time.monotonic() >= end, 16, 'the cut', 0.2)
    proxy.heal()
    wait.until(lambda: len(realm.claims()) == 16, 60, 'sixteen claims')
    assert realm.settles(agents, 60) == workers
    for load in loads:
        load.takes(10)
    for load in loads:
        result = load.stop()
        assert result['failed'] == 0, result
    assert realm.claims_made() == made + 16
    check(loads, layout='41/4/12', workers='0-15', ttl=1000, lead=5)


def test_a_seventeenth_agent_waits_for_a_free_id(lab):
    """In a full realm it lists with back-off, creates nothing, says so, and
    gets an ID when one leaves."""
    realm, agents = full_realm(lab, QUICK)
    realm.settles(agents, 60)
    proxy = lab.proxy()
    late = lab.agent(realm, hosts=proxy.hosts, conf=QUICK).start()
    doc = late.refuses('no_claim', 20)
    wait.until(lambda: '16 taken, 0 quarantined' in late.log(), 20,
               lambda: 'it says how many are taken: %s' % late.tail())
    made, listed = realm.claims_made(), proxy.counts['list']
    assert proxy.counts['create'] <= 9
    created = proxy.counts['create']
    end = time.monotonic() + 8
    wait.until(lambda: time.monotonic() >= end, 9, 'eight seconds', 0.2)
    assert proxy.counts['create'] == created
    assert realm.claims_made() == made
    assert 1 <= proxy.counts['list'] - listed <= 12
    assert doc['worker'] is None
    left = agents[5].worker()
    agents[5].end()
    late.serving(45)
    assert late.worker() == left
    realm.settles(agents[:5] + agents[6:] + [late])
    assert lab.load(late, count=1000).finish()['failed'] == 0


@pytest.mark.short
def test_the_younger_of_two_that_want_one_id_ends_on_another(lab):
    """The counter moved on by 1023 creations comes back to the same ID."""
    realm = lab.realm()
    older = lab.agent(realm, conf=QUICK).up()
    status = older.status()
    path = realm.claims_path
    with lab.server.client() as zoo:
        for _ in range(1023):
            node = zoo.create(path + '/other-', b'', EPHEMERAL | SEQUENTIAL)
            zoo.delete(node)
    assert (int(node[-10:]) + 1) % 1024 == int(status['counter']) % 1024
    made = realm.claims_made()
    younger = lab.agent(realm, conf=QUICK).up()
    assert older.worker() == int(status['worker'])
    assert older.status()['claim'] == status['claim']
    assert younger.worker() != older.worker()
    assert realm.claims_made() == made + 2
    loads = [lab.load(a, threads=2, count=20000) for a in (older, younger)]
    for load in loads:
        assert load.finish()['failed'] == 0
    realm.settles([older, younger])
    check(loads, workers=numbers([older.worker(), younger.worker()]))


@pytest.mark.short
def test_marks_deleted_by_hand_under_load(lab):
    """Never re-created by who has seen them, and whoever creates one where
    some were deleted starts above everything that can have been issued."""
    reserve_ms = 5000
    realm = lab.realm('--first', '--workers', '0-3', '--reserve-max',
                      str(reserve_ms), '--skew-refuse', '1000')
    conf = dict(QUICK, reserve_ms=reserve_ms, skew_refuse_ms=1000)
    agents = [lab.agent(realm, conf=conf).start() for _ in range(2)]
    for agent in agents:
        agent.serving()
    loads = [lab.load(a, threads=2, rate=1000, timeout=200) for a in agents]
    for load in loads:
        load.takes(1000)
    workers = [a.worker() for a in agents]
    with lab.server.client() as zoo:
        paths = [realm.mark_path(w) for w in workers]
        for path in paths:
            zoo.delete(path)
    deleted_ms = int(time.time() * 1000)
    for agent, old in zip(agents, workers):
        agent.wait_status(lambda d: d['state'] == 'serving'
                          and int(d['worker']) != old, 40, 'a new ID')
    for load in loads:
        load.takes(500, 30)
    epoch_ms = int(realm.contract()['epoch_ms'])
    for worker, mark in realm.marks().items():
        if mark['stat'].ctime >= deleted_ms:
            ahead = epoch_ms + int(mark['ceiling_tick']) - mark['stat'].ctime
            assert ahead >= 0, (worker, mark)
    # two more agents take the IDs whose marks are gone
    more = [lab.agent(realm, conf=conf).start() for _ in range(2)]
    for agent in more:
        agent.serving(40)
    loads += [lab.load(a, rate=1000, seconds=1, timeout=5000) for a in more]
    assert sorted(realm.settles(agents + more, 30)) == [0, 1, 2, 3]
    for load in loads[:2]:
        load.stop()
    for load in loads[2:]:
        assert load.finish()['failed'] == 0
    check(loads, workers='0-3')
    assert any('marks_deleted' in a.log() for a in agents + more)


def test_a_mark_that_lies_ahead_is_told_with_its_instant(lab):
    """Deleted under the only agent of a young realm, or not_before: the words
    and the refusal say until when, and one deletion is told once."""
    realm = lab.realm('--first')
    agent = lab.agent(realm, conf=dict(QUICK, reserve_ms=3000)).up()
    with lab.server.client() as zoo:
        zoo.delete(realm.mark_path(agent.worker()))
    begin = r'worker ID \d+ is held; its IDs begin at \S+Z, in (\d+)\.\d s$'
    doc = agent.wait_status(lambda d: d['state'] == 'refusing'
                            and re.search(begin, d.get('words', '')), 60,
                            'it says until when')
    assert doc['words'].startswith('window_spent: ')
    assert 5 < int(re.search(begin, doc['words']).group(1)) <= 70
    # (the auditor's alert of the realm comes on top)
    assert agent.log().count('its next owner waits') == 1, agent.tail()

    later = lab.realm('--first')
    contract = later.contract()
    contract['not_before_ms'] = str(int(time.time() * 1000) + 3600 * 1000)
    with lab.server.client() as zoo:
        zoo.set(later.path, json.dumps(contract).encode())
    agent = lab.agent(later, conf=QUICK).start()
    doc = agent.wait_status(
        lambda d: re.search(begin, d.get('words', '')), 60, 'the same')
    assert doc['words'].startswith('no_claim: ')
    assert 3000 < int(re.search(begin, doc['words']).group(1)) <= 3600


@pytest.mark.short
def test_a_claim_deleted_by_hand_comes_back(lab):
    """The watch tells; worker ID and mark stay."""
    realm = lab.realm()
    agent = lab.agent(realm, conf=QUICK).up()
    worker, claim = agent.worker(), agent.status()['claim']
    load = lab.load(agent, rate=500, timeout=5000)
    with lab.server.client() as zoo:
        zoo.delete(realm.claims_path + '/' + claim)
    agent.wait_status(lambda d: d['claim'] not in (None, claim)
                      and d['state'] == 'serving', 20, 'a new claim')
    assert realm.settles([agent]) == [worker]
    assert load.stop()['failed'] == 0
    check([load], workers=worker)


def test_a_renewed_realm_goes_on(lab):
    """The way out at the counter's end: a new generation on a live tree."""
    realm = lab.realm('--first', '--reserve-max', '2000')
    conf = dict(QUICK, reserve_ms=2000, renew_ms=500, op_deadline_ms=400)
    agents = [lab.agent(realm, conf=conf).start() for _ in range(2)]
    for agent in agents:
        agent.serving()
    loads = [lab.load(a, rate=500, timeout=200) for a in agents]
    for load in loads:
        load.takes(100)
    old = realm.contract()
    firn('realm', 'renew', '--skew-refuse', '1000', '--zk', lab.server.hosts,
         '--realm', realm.name)
    new = realm.contract()
    assert new['uuid'] == old['uuid']
    assert re.match(r'2-[0-9a-f]{8}$', new['generation']), new
    wait.until(lambda: len(realm.claims()) == 2, 30, 'two new claims')
    for agent in agents:
        agent.wait_status(lambda d: d['state'] == 'serving'
                          and d['generation'] == new['generation'], 40,
                          'serves in the new generation')
    for load in loads:
        load.takes(100)
        load.stop()
    check(loads)
    realm.settles(agents)


@pytest.mark.short
def test_another_realm_under_the_same_name_is_refused_at_once(lab):
    """Another uuid than at start: promise 4, not promise 5."""
    realm = lab.realm()
    agent = lab.agent(realm, conf=QUICK).up()
    with lab.server.client() as zoo:
        data, stat = zoo.get(realm.path)
        other = data.replace(realm.contract()['uuid'].encode(),
                             b'00112233-4455-4677-8899-aabbccddeeff')
        zoo.set(realm.path, other, stat.version)
    agent.refuses('realm_changed', 10)


def on_a_terminal(*words, **env):
    """What it prints there."""
    master, slave = os.openpty()
    try:
        subprocess.run([program('firn'), *words], stdin=subprocess.DEVNULL,
                       stdout=slave, stderr=slave, timeout=60,
                       env=clean_env(dict(env, TERM='xterm')), check=False)
        os.close(slave)
        parts = []
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the end, on Linux
                break
            if not part:
                break
            parts.append(part)
        return b''.join(parts).decode()
    finally:
        os.close(master)


@pytest.mark.short
def test_the_table_shows_trouble_first_and_colour_on_a_terminal(lab):
    realm = lab.realm('--first', '--workers', '0-3')
    agents = [lab.agent(realm, conf=QUICK).up() for _ in range(2)]
    with lab.server.client() as zoo:  # one that says nothing
        uuid = '01234567-89ab-4def-8123-456789abcdef'
        silent = max(a.worker() for a in agents) + 1
        zoo.create('%s/%s-w%04d-' % (realm.claims_path, uuid, silent), b'',
                   EPHEMERAL | SEQUENTIAL)
        words = ('fleet', '--zk', lab.server.hosts, '--realm', realm.name)
        # what an agent is, it says with its next renewal
        wait.until(lambda: [a['state'] for a in firn(*words, '--json').json[
            'agents']].count('serving') == 2, 20, 'both say that they serve')
        table = firn(*words).out
        rows = [line.split() for line in table.splitlines()[1:4]]
        assert [int(r[0]) for r in rows] == [silent] + sorted(
            a.worker() for a in agents), table
        assert rows[0][3] == '-' and rows[1][3] == 'serving', table
        assert '\x1b' not in table
        shown = on_a_terminal(*words).splitlines()
        assert shown[1].startswith('\x1b[31m') and \
            shown[1].endswith('\x1b[0m'), shown
        assert '\x1b' not in shown[2], shown
        assert '\x1b' not in on_a_terminal(*words, NO_COLOR='1')
        doc = firn(*words, '--json', status=None).json
        assert [int(a['worker']) for a in doc['agents']] == sorted(
            [silent] + [int(r[0]) for r in rows[1:]]), 'documents by worker ID'
