# SPDX-License-Identifier: Apache-2.0
"""ZooKeeper carried it out, but nobody was told: no repeat, no orphan."""
import pytest

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.load import check

CLAIM = r'/workers\.[^/]+/[0-9a-f-]{36}-w\d*-'
MARK = r'/marks\.[^/]+/\d{4,}$'
# reset: the client says -4; silence: -7, or our own deadline; skip: -2
WAYS = ['reset', 'silence', 'skip']
CASES = [pytest.param('reset', 'reply', marks=pytest.mark.short),
         pytest.param('skip', 'reply', marks=pytest.mark.short),
         ('silence', 'reply'), ('reset', 'request'),
         pytest.param('skip', 'request', marks=pytest.mark.long),
         pytest.param('silence', 'request', marks=pytest.mark.long)]


def pair_of_agents(lab, realm):
    """Two agents, the first behind a proxy."""
    proxy = lab.proxy()
    agents = [lab.agent(realm, hosts=proxy.hosts, conf=QUICK),
              lab.agent(realm, conf=QUICK)]
    return proxy, agents


@pytest.mark.parametrize('then,what', CASES)
def test_a_mark_write_is_lost(lab, then, what):
    """Three renewals in a row, under load: the agent keeps ID and window."""
    realm = lab.realm()
    proxy, agents = pair_of_agents(lab, realm)
    for agent in agents:
        agent.up()
        agent.reserves(15000)
    workers = [a.worker() for a in agents]
    loads = [lab.load(a, threads=2, rate=1000, timeout=2000) for a in agents]
    rule = proxy.swallow('set', MARK, count=3, then=then, what=what)
    rule.wait(30, 3)
    version = realm.marks()[workers[0]]['stat'].version
    wait.until(lambda: realm.marks()[workers[0]]['stat'].version > version + 1,
               20, 'it renews again')
    for load in loads:
        result = load.stop()
        assert result['failed'] == 0, result
    assert realm.settles(agents) == workers
    check(loads, workers='%d,%d' % tuple(workers), ttl=1000, lead=5)


@pytest.mark.parametrize('then,what', CASES)
def test_a_claims_creation_is_lost(lab, then, what):
    """Twice in a row: the agent finds its node again or gives it up."""
    realm = lab.realm()
    proxy, agents = pair_of_agents(lab, realm)
    rule = proxy.swallow('create', CLAIM, count=2, then=then, what=what)
    for agent in agents:
        agent.start()
    rule.wait(30)
    for agent in agents:
        agent.serving(40)
    realm.settles(agents)
    loads = [lab.load(a, rate=1000, seconds=1) for a in agents]
    for load in loads:
        assert load.finish()['failed'] == 0
    check(loads)


@pytest.mark.parametrize('then', WAYS)
def test_a_marks_creation_is_lost(lab, then):
    realm = lab.realm('--first', '--workers', '3-4')
    proxy, agents = pair_of_agents(lab, realm)
    rule = proxy.swallow('create', MARK, then=then)
    for agent in agents:
        agent.start()
    rule.wait(30)
    for agent in agents:
        agent.serving(40)
    assert sorted(realm.settles(agents)) == [3, 4]
    loads = [lab.load(a, rate=1000, seconds=1) for a in agents]
    for load in loads:
        assert load.finish()['failed'] == 0
    check(loads, workers='3-4')


@pytest.mark.parametrize('then', WAYS)
def test_a_take_over_is_lost(lab, then):
    """The first write into the mark of an owner before."""
    realm = lab.realm('--first', '--workers', '3-3')
    before = lab.agent(realm, conf=QUICK).up()
    loads = [lab.load(before, rate=1000, seconds=1)]
    assert loads[0].finish()['failed'] == 0
    before.end()
    proxy = lab.proxy()
    rule = proxy.swallow('set', MARK, count=2, then=then)
    after = lab.agent(realm, hosts=proxy.hosts, conf=QUICK).start()
    rule.wait(30)
    after.serving(40)
    loads.append(lab.load(after, rate=1000, seconds=1))
    assert loads[1].finish()['failed'] == 0
    assert realm.settles([after]) == [3]
    check(loads, workers=3)


@pytest.mark.parametrize('operation,path', [('set', MARK), ('delete', CLAIM)])
def test_a_clean_stop_is_lost(lab, operation, path):
    """The lowering of the mark, or the claim's deletion: it ends in time, and
    whoever comes next repeats nothing."""
    realm = lab.realm('--first', '--workers', '3-3')
    proxy = lab.proxy()
    # no renewal comes between the rule and the stop's own write
    before = lab.agent(realm, hosts=proxy.hosts, conf=dict(
        QUICK, session_ms=2000, renew_ms=1000, reserve_ms=3000)).up()
    loads = [lab.load(before, rate=1000, seconds=1)]
    assert loads[0].finish()['failed'] == 0
    rule = proxy.swallow(operation, path, then='reset')
    before.end(20)
    assert rule.seen
    after = lab.agent(realm, conf=QUICK).up(40)
    loads.append(lab.load(after, rate=1000, seconds=1))
    assert loads[1].finish()['failed'] == 0
    assert realm.settles([after]) == [3]
    check(loads, workers=3)


def test_a_slow_server_loses_nothing(lab):
    """0.6 s a round trip: far above any usual one, below the deadlines."""
    realm = lab.realm()
    proxy = lab.proxy()
    proxy.slow(0.3)
    agent = lab.agent(realm, hosts=proxy.hosts,
                      conf=dict(session_ms=10000, renew_ms=3000,
                                op_deadline_ms=2500)).up(40)
    load = lab.load(agent, rate=500, seconds=4)
    assert load.finish()['failed'] == 0
    realm.settles([agent])
    check([load], workers=agent.worker())
