# SPDX-License-Identifier: Apache-2.0
"""Wall clocks that are wrong, or step: hosts with clocks of their own.

Who is off by its peers refuses and says so; whose clock steps does what the
table of on_step says; the healthy raise nothing; no ID is given out twice.
"""
import statistics
import time
import uuid

import pytest

from firnlab import wait
from firnlab.build import AGAIN, firn
from firnlab.load import check, numbers

HOUR = 3600
# Renewals often, so that a verdict takes a second at most.
SWIFT = {'session_ms': 4000, 'renew_ms': 300, 'op_deadline_ms': 250,
         'reserve_ms': 60000, 'audit_ms': 1000}


def hosts_of(lab, realm, *offsets, **conf):
    return [lab.host(realm, offset, conf=dict(SWIFT, **conf)).start()
            for offset in offsets]


def judged(host, peers, seconds=15):
    """Waits until it has compared itself with so many peers."""
    return host.serving().wait_status(
        lambda d: d['peers'] >= peers, seconds, 'a verdict by %d peers' % peers)


def said(host, *words):
    """Lines of its log with all these words."""
    return [line for line in host.log().splitlines()
            if all(w in line for w in words)]


FLEET = ('fleet_skew', 'agent_stale')  # the auditor says them, of others


def nothing_raised(hosts):
    for host in hosts:
        own = [line for line in said(host, 'alert')
               if not any(kind in line for kind in FLEET)]
        assert not own, own
        assert host.state() == 'serving'


def now_ms():
    return int(time.time() * 1000)


def bad_since(load, ms):
    """(ms from then to the first failed call, to the next good one) of the
    first thread; None while there is no such event."""
    bad = [e.ms for e in load.events() if e.ms >= ms and e.name != 'ok']
    if not bad:
        return None, None
    good = [e.ms for e in load.events() if e.ms > bad[0] and e.name == 'ok']
    return bad[0] - ms, good[0] - ms if good else None


# ---- the skew ----------------------------------------------------------------

@pytest.mark.short
def test_right_clocks(lab):
    """Three agents, two of them on one host, which has one vote; and alone it
    serves, and says so.  (No library of clocks: also with sanitizers.)"""
    realm = lab.realm()
    boots = [str(uuid.uuid4()) for _ in range(2)]
    agents = [lab.agent(realm, conf=SWIFT, testing=True,
                        env={'FIRN_TEST_BOOT_ID': boot}).start()
              for boot in (boots[0], boots[0])]
    for agent in agents:
        agent.serving()
        assert agent.status()['peers'] == 0
        assert len(said(agent, 'no peers to compare with')) == 1
    agents.append(lab.agent(realm, conf=SWIFT, testing=True, env={
        'FIRN_TEST_BOOT_ID': boots[1]}).start())
    for agent in agents:
        assert judged(agent, 1)['peers'] == 1
    nothing_raised(agents)
    assert all(abs(a.status()['skew_ms']) < 300 for a in agents)
    agents.pop().end()
    for agent in agents:
        agent.wait_status(lambda d: d['peers'] == 0, 10, 'alone again')


def test_off_at_the_start(lab):
    """11 s refuses with its figures and 75 at the client; 9 s warns and
    serves; back to 0 serves again.  The healthy raise nothing."""
    realm = lab.realm()
    good = hosts_of(lab, realm, 0, 0)
    for host in good:
        judged(host, 1)
    far, near, slow = hosts_of(lab, realm, 11, 9, -11)
    words = far.refuses('clock_skew', 10)['words']
    # what the peers' average is, to a few milliseconds
    assert 'ahead of the average of' in words and 'peers' in words, words
    assert 10900 < far.status()['skew_ms'] < 11100
    assert -11100 < slow.refuses('clock_skew', 10)['skew_ms'] < -10900
    for told in (firn('next', '--socket', far.socket, status=AGAIN).err,
                 firn('status', '--socket', far.socket, status=AGAIN).out):
        assert 'clock_skew' in told and 'average of' in told, told
    assert said(far, 'alert skew_refuse', 'average of')
    assert 8900 < judged(near, 2)['skew_ms'] < 9100
    assert said(near, 'alert skew_warn') and not said(near, 'skew_refuse')
    wait.until(lambda: [a for a in realm_fleet(lab, realm)['agents']
                        if a['reason'] == 'clock_skew'
                        and 10900 < a['skew_ms'] < 11100], 5,
               'the fleet shows who is off')
    nothing_raised(good)
    load = lab.load(far, rate=500, timeout=50)
    wait.until(load.failed, 5, 'calls are refused')
    repaired_ms = now_ms()
    for host in (far, near, slow):
        host.clock.set(0)
    load.takes(10, 5)
    took = min(e.ms for e in load.events() if e.name == 'ok') - repaired_ms
    print('from repair to serving: %d ms' % took)
    for host in (far, slow):
        judged(host, 3)
        assert abs(host.status()['skew_ms']) < 200
    nothing_raised(good)
    load.stop()


def realm_fleet(lab, realm):
    return firn('fleet', '--zk', lab.server.hosts, '--realm', realm.name,
                '--json', status=None).json


def test_of_two_the_wrong_one_refuses(lab):
    """ZooKeeper's clock decides, whoever came first; and of five with one an
    hour off four serve."""
    pairs, fives = lab.realm(), lab.realm()
    first = hosts_of(lab, pairs, 11)[0].serving()  # alone: serves, and says so
    assert said(first, 'no peers to compare with')
    five = hosts_of(lab, fives, 0, 0, 0, 0, HOUR)
    second = hosts_of(lab, pairs, 0)[0].serving()
    first.refuses('clock_skew', 10)
    for host in five[:4]:
        judged(host, 3)
    five[4].refuses('clock_skew', 10)
    # a third, right one: nothing changes but the average
    third = hosts_of(lab, pairs, 0)[0]
    judged(third, 1)
    assert first.status()['reason'] == 'clock_skew'
    nothing_raised(five[:4] + [second, third])


def test_a_wrong_zookeeper_refuses_nobody(own_lab):
    """The server's clock 11 s off, then an hour: three good hosts serve."""
    server = own_lab.own_server(offset=11)
    realm = own_lab.realm()
    good = hosts_of(own_lab, realm, 0, 0, 0)
    for host in good:
        doc = judged(host, 2)
        assert abs(doc['skew_ms']) < 300 and doc['offset_ms'] < -10700, doc
    loads = [own_lab.load(h, rate=200, timeout=2000).takes(10) for h in good]
    server.clock.set(-HOUR)
    for host in good:
        host.wait_status(lambda d: d['peers'] >= 2
                         and d['offset_ms'] > 3500000, 15, 'a new offset')
    # who comes now is judged by the peers, too
    judged(hosts_of(own_lab, realm, 0)[0], 3)
    for load in loads:
        assert load.stop()['failed'] == 0
    for host in good:
        assert not said(host, 'alert skew'), said(host, 'alert skew')


def test_leader_changes_and_its_clock_steps(own_lab):
    """Three servers: the leader dies, the next one's clock goes 20 s ahead
    and an hour back: nobody refuses."""
    ensemble = own_lab.own_ensemble(clocks=True)
    realm = own_lab.realm()
    good = hosts_of(own_lab, realm, 0, 0, 0)
    for host in good:
        judged(host, 2)
    loads = [own_lab.load(h, rate=200, timeout=2000).takes(10) for h in good]
    old = ensemble.leader()
    for server in ensemble.servers:  # each one's clock is another
        if server is not old:
            server.clock.set(15)
    old.kill()
    new = ensemble.leader()
    for offset, low, high in ((None, -15500, -14500), (35, -35500, -34500),
                              (-HOUR, 3599500, 3600500)):
        if offset is not None:
            new.clock.set(offset)
        for host in good:
            host.wait_status(
                lambda d: d['connected'] and d['peers'] >= 2 and low
                < (d['offset_ms'] or 0) < high, 20, 'offset of %s' % offset)
    for load in loads:
        assert load.stop()['failed'] == 0
    for host in good:
        assert not said(host, 'alert skew'), said(host, 'alert skew')


# ---- steps -------------------------------------------------------------------

POLICIES = ({'on_step': 'wait'}, {'on_step': 'fail'}, {'on_step': 'logical'},
            {'on_step': 'logical', 'logical_lead_ms': 2 * HOUR * 1000})


class Stepped:
    """Hosts, one of each policy, whose clocks all step alike, under load."""

    def __init__(self, lab, realm, hosts=None):
        self.hosts = [lab.host(realm, conf=dict(SWIFT, **p), hosts=hosts)
                      .start() for p in POLICIES]
        for host in self.hosts:
            host.serving().reserves(50000)
        self.loads = [lab.load(h, rate=500, timeout=1000).takes(10)
                      for h in self.hosts]
        self.figures = []

    def step(self, seconds):
        self.failed = [load.failed() for load in self.loads]
        self.at_ms = now_ms()
        for host in self.hosts:
            host.clock.step(seconds)

    def go_on(self, which=range(len(POLICIES))):
        """These take more IDs, and no call fails."""
        for i in which:
            self.loads[i].takes(100, 5)
            assert self.loads[i].failed() == self.failed[i], (
                self.hosts[i].tail(10))

    def refuse(self, which, reason, *words):
        for i in which:
            wait.until(lambda: self.loads[i].failed() > self.failed[i], 5,
                       lambda: self.hosts[i].tail(10))
            doc = self.hosts[i].wait_status(
                lambda d: d['reason'] == reason, 3, 'refuses: ' + reason)
            for word in words:
                assert word in doc['words'], doc

    def return_ms(self, which, low, high, since=None):
        """They come back by themselves, so long after the step."""
        since = since or self.at_ms
        for i in which:
            self.loads[i].takes(100, high / 1000 + 5)
            bad, good = bad_since(self.loads[i], self.at_ms)
            good = max(e.ms for e in self.loads[i].events()
                       if e.name == 'ok') - since
            self.figures.append((bad, good))
            assert low <= good <= high, (good, self.loads[i].events()[-4:])

    def end(self):
        workers = [h.worker() for h in self.hosts]
        for load in self.loads:
            load.stop()
        print('from step to refusal, to return (ms):', self.figures)
        check(self.loads, workers=numbers(workers))


def back(s):
    """Back 3 ms, 3 s and an hour: the same with ZooKeeper and without."""
    refusing, all_but_fail = (0, 1, 2), (0, 2, 3)
    for _ in range(20):  # 3 ms are over before a busy machine has looked
        s.step(-0.003)
        s.go_on()  # `fail` refuses for 3 ms, which its clients wait out
        s.step(0.003)
        s.go_on()
        if said(s.hosts[1], 'clock_step', 'went back by'):
            break
    assert said(s.hosts[1], 'clock_step', 'went back by')
    for i in all_but_fail:
        assert not said(s.hosts[i], 'went back by')
    s.step(-3)
    s.refuse(refusing, 'clock_back', 'service returns at')
    s.go_on([3])
    s.return_ms(refusing, 2900, 9000)
    s.step(-HOUR)
    at = time.time() + s.hosts[0].clock.seconds + HOUR
    s.refuse(refusing, 'clock_back',
             time.strftime('returns at %Y-%m-%dT%H:', time.gmtime(at)))
    s.go_on([3])
    assert said(s.hosts[0], 'alert clock_step', 'service returns at')
    repaired_ms = now_ms()
    for host in s.hosts:
        host.clock.step(HOUR)
    s.return_ms(refusing, 0, 6000, since=repaired_ms)


def test_steps_with_zookeeper(lab):
    realm = lab.realm()
    good = hosts_of(lab, realm, *[0] * 4)
    for host in good:
        judged(host, 3)
    s = Stepped(lab, realm)
    for host in s.hosts:
        judged(host, 4)
    back(s)
    for host in s.hosts[:3]:  # 3 s behind their peers by now
        host.wait_status(lambda d: abs((d['skew_ms'] or 0) + 3000) < 200, 5,
                         'its skew')
    for skew_ms in (0, 3000):  # leads to a good time: followed
        s.step(3)
        s.go_on()
        for host in s.hosts:
            host.wait_status(lambda d: d['skew_ms'] is not None and
                             abs(d['skew_ms'] - skew_ms) < 200, 5,
                             'the step is followed')
    for host in s.hosts:
        assert said(host, 'alert clock_step', 'followed: it agrees')
    s.step(-3)
    s.refuse((0, 1, 2), 'clock_back')
    s.return_ms((0, 1, 2), 2900, 9000)
    s.step(HOUR)  # leads to a bad one: the old time goes on
    s.go_on()
    for host in s.hosts:
        wait.until(lambda: said(host, 'clock_step', 'not followed'), 5,
                   host.tail)
    for host in s.hosts[:3]:  # the fourth has gone on counting above theirs
        assert abs(host.status()['skew_ms']) < 200
    s.go_on()
    s.step(-HOUR)  # repaired: nothing happens
    s.go_on()
    nothing_raised(good)
    s.end()


def test_steps_without_zookeeper(lab):
    realm = lab.realm()
    good = hosts_of(lab, realm, *[0] * 4)
    proxy = lab.proxy()
    s = Stepped(lab, realm, hosts=proxy.hosts)
    proxy.hole()
    for host in s.hosts:
        host.wait_status(lambda d: d['state'] == 'isolated', 10, 'isolated')
    back(s)
    for seconds in (HOUR, 3):  # inside the window the old time goes on
        s.step(seconds)
        s.go_on()
        for host in s.hosts:
            wait.until(lambda: said(host, 'clock_step', 'ZooKeeper is away',
                                    'not followed'), 5, host.tail)
        s.step(-seconds)
        s.go_on()
    assert all(h.state() == 'isolated' for h in s.hosts)
    s.step(6)  # 3 s behind them until now
    s.go_on()
    proxy.heal()  # now it can be told where the clock leads
    for host in s.hosts:
        host.wait_status(lambda d: abs((d['skew_ms'] or 0) - 3000) < 200, 20,
                         'the step is followed')
    s.go_on()
    nothing_raised(good)
    s.end()


@pytest.mark.real_time
def test_from_step_to_refusal_and_back(lab):
    """20 steps back by a second: how soon it refuses, how late it returns."""
    realm = lab.realm()
    hosts = hosts_of(lab, realm, *[0] * 4)
    for host in hosts:
        judged(host, 1)
    # what a client has in its cache it may hand out for as long as its ttl
    loads = [lab.load(h, rate=500, timeout=20, ttl=20).takes(10)
             for h in hosts]
    figures = []
    for _ in range(5):
        at_ms = now_ms()
        for host in hosts:
            host.clock.step(-1)
        for load in loads:
            figures.append(wait.until(
                lambda: None not in bad_since(load, at_ms)
                and bad_since(load, at_ms), 5, load.events))
        for load in loads:
            load.takes(20)
    for name, values in zip(('refusal', 'return'), zip(*figures)):
        print('from step to %s: p50 %d ms, max %d ms' % (
            name, statistics.median(values), max(values)))
    assert max(bad for bad, _ in figures) < 5000
    # both from the refusal's own beginning
    assert min(good for _, good in figures) >= 900
    assert max(bad + good for bad, good in figures) < 1000 + 5000
    workers = [h.worker() for h in hosts]
    for load in loads:
        load.stop()
    check(loads, workers=numbers(workers))


def test_a_clock_that_runs_away(lab):
    """A tenth too fast: no step, but a skew that grows; refused above the
    limit, and back when the clock is right and past what was issued."""
    realm = lab.realm()
    limits = {'skew_warn_ms': 200, 'skew_refuse_ms': 500}
    good = hosts_of(lab, realm, 0, 0, **limits)
    for host in good:
        judged(host, 1)
    away = lab.host(realm, conf=dict(SWIFT, **limits))
    away.clock.set(0, rate=1.1)
    judged(away.start(), 2)
    load = lab.load(away, rate=1000, timeout=50).takes(10)
    doc = away.wait_status(lambda d: d['reason'] in (
        'clock_skew', 'clock_ahead'), 15, 'refuses')
    print('%s at a skew of %d ms' % (doc['reason'], doc['skew_ms']))
    assert 450 <= doc['skew_ms'] < 3000
    assert said(away, 'alert skew_warn')
    repaired_ms = now_ms()
    away.clock.set(0, rate=1)
    load.takes(100, 10)
    judged(away, 2)  # what was counted may have been taken before
    took = max(e.ms for e in load.events() if e.name == 'ok') - repaired_ms
    print('from repair to serving: %d ms' % took)
    assert took < 30000
    nothing_raised(good)
    # a leap into a time that is wrong and runs away: one line, not one each
    # look, and not one measurement each
    failed, renewals = load.failed(), mark_version(realm, away)
    away.clock.set(HOUR, rate=1.3)
    wait.until(lambda: said(away, 'not followed'), 5, away.tail)
    load.takes(2000)
    assert load.failed() == failed
    assert len(said(away, 'clock_step', 'not followed')) <= 4, away.tail()
    assert mark_version(realm, away) - renewals < 20
    worker = away.worker()
    load.stop()
    check([load], workers=worker)


def mark_version(realm, host):
    return realm.marks()[host.worker()]['stat'].version


def test_stopped_past_its_session_with_the_clock_an_hour_back(lab):
    """kill -STOP, the session ends, the clock goes back an hour, kill -CONT:
    it says so, and none is given out twice before and after the repair."""
    realm = lab.realm()
    hosts = hosts_of(lab, realm, 0, 0, 0, session_ms=1500)
    for host in hosts:
        judged(host, 2)
    loads = [lab.load(h, rate=1000, timeout=2000).takes(100) for h in hosts]
    frozen, load = hosts[0], loads[0]
    claim, worker = frozen.status()['claim'], frozen.worker()
    frozen.freeze()
    wait.until(lambda: claim not in realm.claims(), 10, 'its session ends')
    frozen.clock.set(-HOUR)
    frozen.thaw()
    frozen.refuses('clock_back', 10)
    had = load.ids()
    wait.holds(lambda: load.ids() == had, 1, 'it gives out none')
    frozen.clock.set(0)
    load.takes(100)
    assert frozen.worker() == worker
    assert realm.settles(hosts)[0] == worker
    for other in loads[1:]:
        assert other.stop()['failed'] == 0
    load.stop()
    check(loads)
