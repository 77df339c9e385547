# SPDX-License-Identifier: Apache-2.0
"""kill -9, SIGSTOP, and two agents sure of the same worker ID."""

import array
import os
import time

import pytest

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import firn
from firnlab.load import check, numbers


def loads_on(lab, agents, **options):
    """Two kinds of application on each agent: single IDs and hundreds."""
    options.setdefault('timeout', 5000)
    loads = []
    for agent in agents:
        loads.append(lab.load(agent, threads=2, rate=1000, **options))
        loads.append(lab.load(agent, mode='many', batch=200, rate=100,
                              **options))
    for load in loads:
        load.takes(100)
    return loads


@pytest.mark.parametrize('forgets', [False, True])
@pytest.mark.parametrize('kills', [
    pytest.param(3, marks=pytest.mark.short), 30])
def test_killed_agents_come_back_and_no_call_fails(lab, kills, forgets):
    """kill -9 in a loop under load: none twice, no call with a 5 s deadline
    fails; with the state file of the life before, and without."""
    realm = lab.realm()
    agents = [lab.agent(realm, conf=QUICK).start() for _ in range(3)]
    for agent in agents:
        agent.serving()
    workers = [a.worker() for a in agents]
    loads = loads_on(lab, agents)
    for i in range(kills):
        agent = agents[i % 3]
        agent.kill()
        if forgets:
            agent.forget()
        agent.up()
        for load in loads:
            if load.socket == agent.socket:
                load.takes(20)
        # with the file it keeps its ID; without, the dead one's mark is ahead
        assert (agent.worker() == workers[i % 3]) != forgets
        workers[i % 3] = agent.worker()
    for load in loads:
        load.takes(100)
    for load in loads:
        result = load.stop()
        assert result['failed'] == 0, result
    found = check(loads, ttl=1000, lead=5)
    assert len(found['workers']) == 3 + (kills if forgets else 0)
    # claims of the dead go with their sessions; those of the living stay
    realm.settles(agents, 30)


@pytest.mark.short
def test_stopped_past_its_session_it_keeps_its_id(lab):
    """SIGSTOP past the session while others take load, SIGCONT: none twice,
    and whom the mark names stays."""
    realm = lab.realm()
    agents = [lab.agent(realm, conf=QUICK).start() for _ in range(3)]
    for agent in agents:
        agent.serving()
    workers = [a.worker() for a in agents]
    loads = loads_on(lab, agents, pause=1)
    frozen = agents[0]
    old_claim = frozen.status()['claim']
    frozen.freeze()
    wait.until(lambda: old_claim not in realm.claims(), 20,
               'the claim goes with its session')
    for load in loads[2:]:
        load.takes(500)
    frozen.thaw()
    frozen.serving()
    for load in loads:
        load.takes(500)
    new_claim = frozen.wait_status(
        lambda d: d['claim'] not in (None, old_claim), 20,
        'a new claim')['claim']
    assert '-w%04d-' % workers[0] in new_claim
    assert realm.settles(agents) == workers
    for load in loads[2:]:
        assert load.stop()['failed'] == 0
    for load in loads[:2]:
        load.stop()
    check(loads, workers=numbers(workers))


def test_stopped_past_its_window_another_has_its_id(lab):
    """Only two worker IDs: a newcomer takes over the one of the stopped
    agent, which wakes sure of it, and its applications with it."""
    realm = lab.realm('--first', '--workers', '0-1')
    conf = dict(QUICK, session_ms=2000, reserve_ms=4000)
    agents = [lab.agent(realm, conf=conf).start() for _ in range(2)]
    for agent in agents:
        agent.serving()
    loads = loads_on(lab, agents)
    frozen, other = agents
    lost = frozen.worker()
    frozen.freeze()
    newcomer = lab.agent(realm, conf=conf).up(30)
    assert newcomer.worker() == lost
    more = loads_on(lab, [newcomer])
    for load in more:
        load.takes(500)
    frozen.thaw()
    # both IDs are taken: it has none, says so, and waits for one
    frozen.wait_status(lambda d: d['state'] != 'serving' and d['reason']
                       in ('no_claim', 'window_spent'), 20, 'no ID')
    for load in more:
        load.takes(500)
    assert newcomer.worker() == lost
    other_worker = other.worker()
    other.end()
    frozen.serving(40)
    assert frozen.worker() == other_worker
    for load in loads[:2]:
        load.takes(100)
    for load in loads + more:
        load.stop()
    check(loads + more, workers='0-1')


@pytest.mark.short
def test_two_agents_on_one_id_that_never_withdraw(lab):
    """The mark alone decides: none twice, whatever both believe.

    First both are connected and take the mark from each other; then each in
    turn is cut off, sure of its window, while the other takes over and serves.
    """
    realm = lab.realm()
    proxies = [lab.proxy(), lab.proxy()]
    conf = dict(QUICK, session_ms=2000, renew_ms=500, op_deadline_ms=400,
                reserve_ms=2000)
    agents = [lab.agent(realm, hosts=p.hosts, conf=conf, testing=True,
                        env={'FIRN_TEST_WORKER': '7'}).start()
              for p in proxies]
    loads = [lab.load(a, threads=2, rate=2000, timeout=200) for a in agents]
    wait.until(lambda: len(realm.claims()) == 2 and sum(
        load.ids() for load in loads) > 0, 20, 'two claims of one ID')
    wait.until(lambda: realm.marks()[7]['stat'].version >= 8, 20,
               'a contest for the mark')
    for _ in range(3):
        for cut, other in ((0, 1), (1, 0)):
            proxies[cut].hole()
            loads[other].takes(2000, 20)
            proxies[cut].heal()
    for load in loads:
        load.stop()
    assert check(loads, workers=7)['ids'] >= 12000


@pytest.mark.short
def test_two_processes_under_one_claim_name(lab):
    """A copy of an agent's memory: one of the two stops at its first renewal,
    and no ID is given out twice after that."""
    realm = lab.realm()
    conf = dict(QUICK, renew_ms=2000)
    memory = lab.dir + '/memory'
    first = lab.agent(realm, conf=conf, testing=True,
                      env={'FIRN_TEST_TWIN': memory})
    first.up()
    worker = first.worker()
    wait.until(lambda: os.path.exists(memory), 20, 'the memory is written')
    second = lab.agent(realm, conf=conf, testing=True,
                       env={'FIRN_TEST_TWIN_OF': memory}).start()
    loads = [lab.load(a, threads=2, rate=1000, timeout=5000)
             for a in (first, second)]
    apart = wait.until(
        lambda: both_apart(first, second), 30,
        lambda: 'two worker IDs: %s and %s\n%s' % (
            first.status(), second.status(), second.tail()))
    assert worker in apart
    text = first.log() + second.log()
    assert "another process lives under this claim's name" in text
    now = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 1))
    floor = int(firn('floor', now, '--layout', 'firn').out)
    for load in loads:
        load.takes(5000)
    for load in loads:
        load.stop()
    check([above(load, floor) for load in loads])
    assert both_apart(first, second)
    realm.settles([first, second], 30)


class Part:
    """Some of a load's IDs, as files for the checker."""

    def __init__(self, files):
        self.files = lambda: files


def above(load, floor):
    """What a load took from this ID on."""
    files = []
    for name in load.files():
        if not name.endswith('.ids'):
            continue
        ids = array.array('Q')
        with open(name, 'rb') as f:
            ids.frombytes(f.read())
        kept = array.array('Q', (i for i in ids if i >= floor))
        assert len(kept) > 0
        files.append(name + '.part')
        with open(files[-1], 'wb') as f:
            kept.tofile(f)
    return Part(files)


def both_apart(*agents):
    docs = [a.status() for a in agents]
    if any(d.get('state') != 'serving' for d in docs):
        return None
    workers = [int(d['worker']) for d in docs]
    return workers if len(set(workers)) == len(workers) else None
