# SPDX-License-Identifier: Apache-2.0
"""From ZooKeeper to the application: many IDs, each of them once."""
import time

import pytest

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import firn
from firnlab.load import check, numbers

TTL_MS, LEAD_MS = 1000, 5
CLIENTS = 8


def three_agents(lab, realm, conf=None):
    agents = [lab.agent(realm, conf=conf).start() for _ in range(3)]
    for agent in agents:
        agent.serving()
    return agents


@pytest.mark.parametrize('total', [
    pytest.param(200000, marks=pytest.mark.short), 20000000])
def test_three_agents_eight_processes_no_id_twice(lab, total):
    """None twice, increasing per thread, the right worker, within the ttl."""
    realm = lab.realm()
    started_ms = int(time.time() * 1000)
    agents = three_agents(lab, realm)
    workers = [a.worker() for a in agents]
    assert len(set(workers)) == 3
    per_thread = total // CLIENTS // 2
    loads = [lab.load(agents[i % 3], threads=2, count=per_thread, timeout=5000)
             for i in range(CLIENTS)]
    results = [load.finish(180) for load in loads]
    for result in results:
        assert result['ids'] == 2 * per_thread
        assert result['failed'] == 0, result
    seen = check(loads, workers=numbers(workers), ttl=TTL_MS, lead=LEAD_MS,
                 not_before=started_ms, not_after=int(time.time() * 1000) + 10)
    assert seen['ids'] == 2 * per_thread * CLIENTS
    assert seen['pairs'] > 0
    for agent, worker in zip(agents, workers):
        assert agent.worker() == worker
        of_this = [x for x in loads if x.socket == agent.socket]
        assert check(of_this, workers=worker)['workers'] == [worker]


@pytest.mark.short
def test_every_way_to_take_ids(lab):
    """One by one, many at once, without blocking: on one agent, together."""
    realm = lab.realm()
    agent = lab.agent(realm).up()
    loads = [lab.load(agent, timeout=20000, **kind) for kind in (
        dict(mode='next', threads=2, count=50000),
        dict(mode='many', threads=2, count=50000, batch=777),
        dict(mode='many', count=100000, batch=50000),
        dict(mode='try', threads=2, count=5000))]
    for load in loads:
        result = load.finish()
        assert result['failed'] == 0, result
    seen = check(loads, workers=agent.worker(), ttl=TTL_MS, lead=LEAD_MS)
    assert seen['ids'] == 310000


@pytest.mark.short
def test_forked_children_share_no_cached_id(lab):
    """Children inherit a handle with a filled cache and an open connection."""
    realm = lab.realm()
    agent = lab.agent(realm).up()
    load = lab.load(agent, threads=2, processes=3, count=40000, timeout=5000)
    result = load.finish()
    assert result['failed'] == 0, result
    seen = check([load], workers=agent.worker())
    assert seen['ids'] >= 4 * 2 * 40000


@pytest.mark.short
def test_a_caller_now_and_then_gets_the_present_tick(lab):
    realm = lab.realm()
    agent = lab.agent(realm).up()
    load = lab.load(agent, rate=20, count=40)
    assert load.finish()['failed'] == 0
    # a batch of one: the age is the round trip, not the ttl
    check([load], workers=agent.worker(), ttl=100, lead=LEAD_MS)


@pytest.mark.short
def test_a_clean_restart_goes_on_above_what_was_issued(lab):
    """One handle over three lives of the agent: upwards all the time."""
    realm = lab.realm()
    agent = lab.agent(realm, conf=QUICK).up()
    load = lab.load(agent, threads=2, rate=500, timeout=5000)
    load.takes(200)
    for _ in range(3):
        agent.end()
        agent.up()
        load.takes(200)
    result = load.stop()
    assert result['failed'] == 0, result
    check([load], ttl=TTL_MS, lead=LEAD_MS)
    realm.settles([agent])


@pytest.mark.short
def test_a_clean_stop_leaves_no_claim_and_a_low_mark(lab):
    """Whoever takes the ID next need not wait for the window to pass."""
    realm = lab.realm('--first', '--workers', '5-5')
    first = lab.agent(realm).up()
    load = lab.load(first, rate=500, seconds=1)
    assert load.finish()['failed'] == 0
    assert realm.marks()[5]['stat'].version > 0
    first.end()
    assert realm.claims() == []
    epoch_ms = int(realm.contract()['epoch_ms'])
    mark_ms = epoch_ms + int(realm.marks()[5]['ceiling_tick'])
    assert mark_ms <= time.time() * 1000 + 10
    start = time.monotonic()
    second = lab.agent(realm).up()
    assert second.worker() == 5
    assert time.monotonic() - start < 15
    more = lab.load(second, rate=500, seconds=1)
    assert more.finish()['failed'] == 0
    check([load, more], workers=5)


def test_who_waits_for_a_mark_to_pass_does_not_say_that_it_serves(lab):
    """The mark of the only worker ID lies ahead, as after a crash: until it
    has passed the state is no `serving`, `firn wait` waits, and callers get a
    refusal with its reason."""
    realm = lab.realm('--first', '--workers', '5-5')
    conf = dict(QUICK, claim_wait_ms=6000)
    before = lab.agent(realm, conf=conf).up()
    before.reserves(4500)
    before.kill()
    agent = lab.agent(realm, conf=conf).start()
    agent.wait_status(lambda d: d['worker'] == 5 or d['state'] == 'serving',
                      40, 'the ID of the dead')
    text = firn('next', '--timeout', 500, '--socket', agent.socket,
                status=None)
    if agent.state() != 'serving':
        assert text.status == 75 and 'no reply' not in text.err, text
    agent.serving(40)
    firn('next', '--timeout', 500, '--socket', agent.socket)


@pytest.mark.short
def test_a_realm_that_comes_later_is_found(lab):
    """No realm: the agent stays up, creates nothing, refuses, looks again."""
    name = 'later-%d' % time.monotonic_ns()
    agent = lab.agent(name, conf=QUICK).start()
    agent.refuses('no_realm', 20)
    with lab.server.client() as zoo:
        assert zoo.exists('/firn/' + name) is None
    lab.realm(name=name)
    agent.serving(40)


@pytest.mark.short
def test_an_agent_in_a_chroot(lab):
    with lab.server.client() as zoo:
        if zoo.exists('/rooted') is None:
            zoo.create('/rooted')
    hosts = lab.server.hosts + '/rooted'
    name = 'inner-%d' % time.monotonic_ns()
    firn('realm', 'create', '--first', '--zk', hosts, '--realm', name)
    agent = lab.agent(name, hosts=hosts).up()
    assert lab.load(agent, count=1000).finish()['failed'] == 0
    with lab.server.client() as zoo:
        assert zoo.exists('/rooted/firn/' + name)
        assert zoo.exists('/firn/' + name) is None


def test_a_leader_dies_under_load(own_lab):
    """Three servers; an agent's connection moves on, its session lives."""
    ensemble = own_lab.own_ensemble()
    realm = own_lab.realm()
    agents = three_agents(own_lab, realm, dict(QUICK, session_ms=6000))
    workers = [a.worker() for a in agents]
    loads = [own_lab.load(a, rate=500, timeout=5000) for a in agents]
    for load in loads:
        load.takes(100)
    ensemble.leader().kill()
    leader = ensemble.leader()
    realm.server = leader
    versions = {w: m['stat'].version for w, m in realm.marks().items()}
    wait.until(lambda: all(m['stat'].version > versions[w] + 1
                           for w, m in realm.marks().items()), 20,
               'all agents renew with the new leader')
    for load in loads:
        result = load.stop()
        assert result['failed'] == 0, result
    assert [a.worker() for a in agents] == workers
    check(loads, workers=numbers(workers), ttl=TTL_MS, lead=LEAD_MS)
