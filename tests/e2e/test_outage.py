# SPDX-License-Identifier: Apache-2.0
"""ZooKeeper killed, frozen, restarted, wiped, rolled back; DNS that fails.

IDs go on for as long as the window lasts, and come back by themselves.
"""
import os
import subprocess
import time

import pytest

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import SOURCE, firn
from firnlab.load import check
from firnlab.process import free_port

SHORT_WINDOW = dict(QUICK, session_ms=2000, reserve_ms=8000)
RESERVE = ('--reserve-max', '8000', '--skew-refuse', '1000')


def now_ms():
    return int(time.time() * 1000)


def first_refusal_ms(load):
    """When the last run of good calls ended; None if all are good."""
    bad = [e.ms for e in load.events() if e.name != 'ok']
    return bad[0] if bad else None


def stand_still(loads):
    """Waits until they get nothing any more: what is in their caches ends
    with its ttl.  Returns their counts."""
    for load in loads:
        wait.until(lambda: now_ms() - load.progress()[2] > 2000, 10,
                   load.progress)
    return [load.ids() for load in loads]


def waiting(seconds):
    end = time.monotonic() + seconds
    wait.until(lambda: time.monotonic() >= end, seconds + 1, 'time to pass',
               0.1)


@pytest.mark.short
def test_killed_ids_go_on_within_the_window_and_come_back(own_lab):
    server = own_lab.own_server()
    realm = own_lab.realm()
    agent = own_lab.agent(realm, conf=SHORT_WINDOW).up()
    worker = agent.worker()
    agent.reserves(6000)
    load = own_lab.load(agent, threads=2, rate=500, timeout=200)
    load.takes(100)
    server.kill()
    killed_ms = now_ms()
    doc = agent.wait_status(lambda d: d['state'] == 'isolated', 10,
                            'isolated')
    assert not doc['connected']
    # promise 5: the reserve less one renewal that was just due
    wait.until(load.failed, 12, 'the window ends')
    refused_ms = first_refusal_ms(load)
    assert refused_ms - killed_ms >= 8000 - 1000 - 500
    assert refused_ms - killed_ms <= 8000 + 5000
    agent.refuses('window_spent', 2)
    frozen_ids = stand_still([load])
    waiting(1)
    assert [load.ids()] == frozen_ids
    why = [e.why for e in load.events() if e.name == 'FIRN_EREFUSED']
    assert why and 'window_spent' in why[0]
    server.start()
    agent.serving(30)
    load.takes(100)
    load.stop()
    assert agent.worker() == worker
    check([load], workers=worker)
    realm.settles([agent])


def test_frozen_for_20_s_no_call_fails(own_lab):
    """The server expires all sessions when it wakes: IDs stay the same."""
    server = own_lab.own_server()
    realm = own_lab.realm()
    agents = [own_lab.agent(realm, conf=dict(QUICK, reserve_ms=60000)).up()
              for _ in range(2)]
    workers = [a.worker() for a in agents]
    for agent in agents:
        agent.reserves(50000)
    loads = [own_lab.load(a, threads=2, rate=500, timeout=2000)
             for a in agents]
    for load in loads:
        load.takes(100)
    claims = realm.claims()
    server.freeze()
    waiting(20)
    assert all(a.state() == 'isolated' for a in agents)
    server.thaw()
    wait.until(lambda: not set(claims) & set(realm.claims()), 30,
               'the old claims are gone')
    for agent in agents:
        agent.wait_status(lambda d: d['state'] == 'serving', 30, 'serves')
    assert realm.settles(agents, 30) == workers
    for load in loads:
        result = load.stop()
        assert result['failed'] == 0, result
    check(loads, workers='%d,%d' % tuple(workers), ttl=1000, lead=5)


def test_restarted_no_call_fails(own_lab):
    """kill -9 and start again: no session expires, nobody notices."""
    server = own_lab.own_server()
    realm = own_lab.realm()
    agent = own_lab.agent(realm, conf=dict(QUICK, session_ms=10000)).up()
    worker, claims = agent.worker(), realm.claims()
    agent.reserves(15000)
    load = own_lab.load(agent, threads=2, rate=500, timeout=2000)
    for _ in range(2):
        load.takes(100)
        server.kill()
        server.start()
    agent.wait_status(lambda d: d['connected'], 20, 'connected')
    load.takes(500)
    result = load.stop()
    assert result['failed'] == 0, result
    assert agent.worker() == worker
    assert realm.claims() == claims
    check([load], workers=worker, ttl=1000, lead=5)


def saved_contract(lab, realm):
    """As an operator keeps it: the output of `firn realm show --json`."""
    path = lab.dir + '/realm.json'
    with open(path, 'w') as f:
        f.write(firn('realm', 'show', '--json', '--zk', lab.server.hosts,
                     '--realm', realm.name).out)
    return path


def test_wiped_it_stops_and_a_restored_realm_starts_it_again(own_lab):
    """Nothing past the window; by itself once the operator restored the
    realm with --after-loss; none twice over both lives."""
    server = own_lab.own_server()
    realm = own_lab.realm('--first', '--workers', '0-1', *RESERVE)
    backup = saved_contract(own_lab, realm)
    before = realm.contract()
    agents = [own_lab.agent(realm, conf=SHORT_WINDOW).up() for _ in range(2)]
    for agent in agents:
        agent.reserves(6000)
    loads = [own_lab.load(a, threads=2, rate=500, timeout=200)
             for a in agents]
    for load in loads:
        load.takes(100)
    server.kill()
    killed_ms = now_ms()
    server.wipe()
    server.start()
    for load in loads:
        wait.until(load.failed, 15, 'the window ends')
        assert first_refusal_ms(load) - killed_ms <= 8000 + 5000
    stopped = stand_still(loads)
    waiting(3)
    assert [load.ids() for load in loads] == stopped
    assert all(a.state() in ('refusing', 'claiming') for a in agents)
    firn('realm', 'create', '--from', backup, '--after-loss', '--skew-refuse',
         '1000', '--zk', server.hosts, '--realm', realm.name)
    after = realm.contract()
    assert after['uuid'] == before['uuid']
    assert after['generation'] != before['generation']
    assert int(after['not_before_ms']) >= now_ms() + 8000 - 1000
    for agent in agents:
        agent.serving(60)
    for load in loads:
        load.takes(500, 30)
    for load in loads:
        load.stop()
    check(loads, workers='0-1')
    realm.settles(agents)
    # whatever is issued now lies above not_before
    fresh = [own_lab.load(a, count=10) for a in agents]
    for load in fresh:
        load.finish()
    check(fresh, not_before=after['not_before_ms'])


def test_rolled_back_it_refuses_until_the_generation_rises(own_lab):
    server = own_lab.own_server()
    realm = own_lab.realm('--first', '--workers', '0-1', *RESERVE)
    agents = [own_lab.agent(realm, conf=SHORT_WINDOW).up() for _ in range(2)]
    server.kill()
    server.save('early')
    server.start()
    for agent in agents:
        agent.serving(30)
        agent.reserves(6000, 30)
    loads = [own_lab.load(a, threads=2, rate=500, timeout=200)
             for a in agents]
    for load in loads:
        load.takes(2000)
    server.kill()
    server.roll_back('early')
    server.start()
    for agent in agents:
        agent.refuses('realm_changed', 60)
    stopped = stand_still(loads)
    waiting(5)
    assert [load.ids() for load in loads] == stopped
    for agent in agents:
        assert agent.status()['reason'] == 'realm_changed'
    firn('realm', 'renew', '--skew-refuse', '1000', '--zk', server.hosts,
         '--realm', realm.name)
    for agent in agents:
        agent.serving(60)
    for load in loads:
        load.takes(500, 30)
    for load in loads:
        load.stop()
    check(loads, workers='0-1')
    realm.settles(agents)


# ---- DNS -------------------------------------------------------------------

@pytest.fixture(scope='module')
def shim(tmp_path_factory):
    path = str(tmp_path_factory.mktemp('dns') / 'dnsfault.so')
    subprocess.run([os.environ.get('CC', 'cc').split()[0], '-D_GNU_SOURCE',
                    '-shared', '-fPIC', '-o', path,
                    SOURCE + '/tests/e2e/dnsfault.c', '-ldl'], check=True)
    return path


class Names:
    """What an agent's resolver does, in a file."""

    def __init__(self, directory, name, shim):
        self.path = '%s/%s.dns' % (directory, name)
        self.env = {'LD_PRELOAD': shim, 'FIRN_DNS_FAULT': self.path}
        self.say('ok')

    def say(self, fault):
        with open(self.path + '.new', 'w') as f:
            f.write(fault)
        os.rename(self.path + '.new', self.path)

    def asked(self):
        try:
            with open(self.path + '.log') as f:
                return f.read().split()
        except FileNotFoundError:
            return []


def agent_by_name(lab, realm, shim, port, fault='ok', conf=None):
    names = Names(lab.dir, 'n%d' % len(lab.agents), shim)
    names.say(fault)
    agent = lab.agent(realm, hosts='zk.test:%d' % port, conf=conf or QUICK,
                      env=names.env)
    return agent, names


def test_dns_fails_or_hangs_while_connected_no_effect(lab, shim):
    """20 s, and the connection is lost and found again meanwhile."""
    realm = lab.realm()
    proxy = lab.proxy()
    pairs = [agent_by_name(lab, realm, shim, proxy.port) for _ in range(2)]
    agents = [agent.up() for agent, _ in pairs]
    workers, claims = [a.worker() for a in agents], realm.claims()
    assert all('ok' in names.asked() for _, names in pairs)
    loads = [lab.load(a, threads=2, rate=500, timeout=2000) for a in agents]
    pairs[0][1].say('fail')
    pairs[1][1].say('hang')
    waiting(10)
    proxy.reset()
    waiting(10)
    for agent in agents:
        assert agent.status()['connected'], agent.tail()
    for load in loads:
        result = load.stop()
        assert result['failed'] == 0, result
    assert realm.settles(agents) == workers
    assert realm.claims() == claims
    check(loads, workers='%d,%d' % tuple(workers), ttl=1000, lead=5)


def test_dns_that_works_later(lab, shim):
    """At start nothing resolves, or the question hangs: the agent answers
    status meanwhile, and serves once names resolve."""
    realm = lab.realm()
    pairs = [agent_by_name(lab, realm, shim, lab.server.port, fault)
             for fault in ('fail', 'hang')]
    for agent, names in pairs:
        agent.start()
        wait.until(names.asked, 10, 'the name is asked for')
    for agent, names in pairs:
        start = time.monotonic()
        assert agent.status()['state'] in ('claiming', 'refusing')
        assert time.monotonic() - start < 10
        names.say('ok')
    for agent, _ in pairs:
        agent.serving(60)
    # a stop during a question that hangs takes no 20 s
    agent, names = agent_by_name(lab, realm, shim, lab.server.port, 'hang')
    agent.start()
    wait.until(names.asked, 10, 'the name is asked for')
    agent.end(8)


@pytest.mark.short
def test_dead_servers_are_not_flooded(lab):
    """Three addresses that refuse: the client alone would try them tens of
    thousands of times a second."""
    realm = lab.realm()
    hosts = ','.join('127.0.0.1:%d' % free_port() for _ in range(3))
    conf = dict(QUICK, log_level='debug')
    agent = lab.agent(realm, hosts=hosts, conf=conf).start()
    tries = lambda: agent.log().count('zookeeper client: ')
    wait.until(lambda: tries() >= 3, 20, 'a few attempts')
    wait.holds(lambda: tries() < 150, 4, 'few attempts')


@pytest.mark.short
def test_several_hosts_of_which_one_lives(lab):
    """A dead port, an IPv6 address where nobody listens, and the server."""
    realm = lab.realm()
    hosts = '127.0.0.1:%d,[::1]:%d,127.0.0.1:%d' % (
        free_port(), free_port(), lab.server.port)
    agent = lab.agent(realm, hosts=hosts, conf=QUICK).up(40)
    assert lab.load(agent, count=1000).finish()['failed'] == 0
