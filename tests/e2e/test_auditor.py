# SPDX-License-Identifier: Apache-2.0
"""The fleet as one node: who writes it, and what comes of him."""
import json
import time

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import firn
from firnlab.jute import EPHEMERAL, SEQUENTIAL, BadVersion, NoNode

AUDIT_MS = 1000
DELAY = 0.3  # of each frame, where the network is slow
CONF = dict(QUICK, audit_ms=AUDIT_MS)


class Node:
    """/firn/REALM/fleet; each look holds that it never went back."""

    def __init__(self, realm):
        self.realm = realm
        self.path = realm.path + '/fleet'
        self.last = None
        self.swept = {}  # when, by who was the auditor

    def look(self):
        """(document, Stat), {} while there is none."""
        try:
            with self.realm.server.client() as zoo:
                data, stat = zoo.get(self.path)
        except NoNode:
            return {}, None
        doc = json.loads(data) if data.startswith(b'{"uuid"') else {}
        if self.last is not None:
            assert stat.version >= self.last.version
            assert stat.mtime >= self.last.mtime
        self.last = stat
        if doc:
            by = doc['auditor']['claim']
            assert int(doc['swept_ms']) >= max(self.swept.values(), default=0)
            self.swept[by] = int(doc['swept_ms'])
        return doc, stat

    def until(self, condition, seconds, what):
        seen = {}

        def found():
            seen['doc'], seen['stat'] = self.look()
            return seen['doc'] and condition(seen['doc']) and seen['doc']
        return wait.until(found, seconds, lambda: '%s: %s' % (what, seen),
                          0.05)

    def alerts(self, doc=None):
        doc = self.look()[0] if doc is None else doc
        return {a['kind']: a for a in doc.get('alerts', [])}


def oldest_first(agents):
    return sorted(agents, key=lambda a: int(a.status()['counter']))


def three(lab, realm, hosts=None):
    """Three hosts with clocks of their own, the one with the oldest claim
    first, and the node that it has written."""
    agents = [lab.host(realm, offset=0.1 * i, conf=CONF,
                       hosts=hosts[i] if hosts else None).up()
              for i in range(3)]
    agents = oldest_first(agents)
    node = Node(realm)
    first = agents[0].status()['claim']
    node.until(lambda d: d['auditor']['claim'] == first
               and d['clocks']['hosts'] == d['agents']['serving'] == 3, 20,
               'the oldest claim audits')
    return agents, node


def takeover(node, agents, old, what):
    """Another one writes; prints after how many audit_ms."""
    last = {'ms': node.last.mtime}

    def other(doc):
        if doc['auditor']['claim'] != old:
            return True
        last['ms'] = node.last.mtime
        return False
    doc = node.until(other, 30, what)
    took = node.last.mtime - last['ms']
    print('\n%s: another auditor %d ms after the last write (%.1f audit_ms)'
          % (what, took, took / AUDIT_MS))
    assert doc['auditor']['claim'] in [a.status().get('claim')
                                       for a in agents]
    return doc


def fleet(realm, status=0):
    return firn('fleet', '--json', '--zk', realm.server.hosts, '--realm',
                realm.name, status=status).json


def test_summary_and_killed_auditor(lab):
    """What it says is what is; killed, another one takes over, who goes on
    with what stood."""
    realm = lab.realm('--first', '--workers', '0-7')
    agents, node = three(lab, realm)
    doc, _ = node.look()
    contract = realm.contract()
    assert doc['uuid'] == contract['uuid']
    assert doc['generation'] == contract['generation']
    assert doc['agents']['all'] == doc['agents']['serving'] == 3
    assert doc['clocks']['count'] == 3 and doc['left_out'] == []
    assert 90000 < int(doc['clocks']['spread_us']) < 400000
    mine = sorted(a.worker() for a in agents)
    assert doc['workers']['taken']['count'] == 3
    assert doc['workers']['free']['count'] == 5
    assert doc['workers']['quarantined']['count'] == 0
    assert doc['oldest'] == doc['auditor']['claim']
    taken = []
    for part in doc['workers']['taken']['ranges'].split(','):
        low, _, high = part.partition('-')
        taken += range(int(low), int(high or low) + 1)
    assert taken == mine
    # The others go by it: the figure is the summary's.
    for agent in agents:
        agent.wait_status(lambda d: d['peers'] == 2, 20, 'two peers')

    # A mark deleted by hand is an alert that outlives its auditor.
    with lab.server.client() as zoo:
        junk = realm.marks_path + '/junk'
        zoo.create(junk)
        zoo.delete(junk)
    node.until(lambda d: 'marks_deleted' in node.alerts(d), 20, 'an alert')
    since = node.alerts()['marks_deleted']['since']
    shown = fleet(realm, 2)
    alert = [a for a in shown['alerts'] if a['kind'] == 'marks_deleted']
    assert [a['since'] for a in alert] == [since]
    assert alert[0]['severity'] == 'critical'
    assert shown['auditor']['claim'] == doc['auditor']['claim']
    assert agents[0].log().count('alert marks_deleted: critical') == 1

    # One that refuses audits all the same, and says so of itself.
    agents[0].clock.step(-20)
    agents[0].refuses('clock_back', 20)
    node.until(lambda d: any(w['reason'] == 'clock_back'
                             for w in d['worst']), 20, 'who is off')
    assert node.look()[0]['auditor']['claim'] == doc['auditor']['claim']

    agents[0].kill()
    doc = takeover(node, agents[1:], doc['auditor']['claim'], 'killed')
    assert node.alerts(doc)['marks_deleted']['since'] == since
    doc = node.until(lambda d: d['agents']['all'] == 2, 30, 'two are left')
    assert doc['workers']['quarantined']['count'] == 1  # its mark is ahead
    assert node.alerts(doc)['marks_deleted']['since'] == since
    # Nobody says it a second time.
    for agent in agents[1:]:
        assert 'alert marks_deleted' not in agent.log()


def test_stopped_auditor_overwrites_nothing(lab):
    """Stopped in the middle of its work, woken two sweeps later."""
    realm = lab.realm()
    agents, node = three(lab, realm)
    doc, _ = node.look()
    auditor = [a for a in agents
               if a.status()['claim'] == doc['auditor']['claim']][0]
    others = [a for a in agents if a is not auditor]
    auditor.freeze()
    takeover(node, others, doc['auditor']['claim'], 'stopped')
    # the next but one, at least: what the woken one knows is old
    version = node.last.version
    node.until(lambda d: node.last.version > version + 1, 20, 'goes on')
    auditor.thaw()
    auditor.serving(30)
    # Node.look() holds that versions, stamps and sweeps only go up
    version = node.last.version
    node.until(lambda d: node.last.version > version + 2, 30, 'goes on')
    assert all(a.state() == 'serving' for a in agents)


def reads_one_node(realm, agent, proxy):
    """For a few renewals it lists nothing and reads one node with each.  (Not
    if the summary has grown old, as on a slow machine.)"""
    path = realm.mark_path(agent.worker())
    before = proxy.counts['list'], proxy.counts['get']
    with realm.server.client() as zoo:
        first = zoo.exists(path).version
        wait.until(lambda: zoo.exists(path).version >= first + 4, 20,
                   'four renewals')
        renewals = zoo.exists(path).version - first
    lists = proxy.counts['list'] - before[0]
    gets = proxy.counts['get'] - before[1]
    print('\n%d renewals: %d gets, %d lists' % (renewals, gets, lists))
    return lists == 0 and gets <= renewals + 1


def test_partitioned_auditor(lab):
    """It cannot write; the others go on, and so does it when it is back."""
    proxies = [lab.proxy() for _ in range(3)]
    realm = lab.realm()
    agents, node = three(lab, realm, [p.hosts for p in proxies])
    doc, _ = node.look()
    other = [p for p in proxies if p.hosts == agents[2].hosts][0]
    wait.until(lambda: reads_one_node(realm, agents[2], other), 40,
               'it reads the summary, and no peer')
    cut = [p for p in proxies if p.hosts == agents[0].hosts][0]
    cut.hole()
    takeover(node, agents[1:], doc['auditor']['claim'], 'partitioned')
    cut.heal()
    agents[0].wait_status(lambda d: d['connected'], 30, 'is back')
    version = node.look()[1].version
    node.until(lambda d: node.last.version > version + 2
               and d['agents']['all'] == 3, 40, 'all three, and it goes on')


def test_claimed_twice_and_few_left(lab):
    """Two claims of one worker ID are an alert at the second sight, too few
    free ones are one at once; both end, and are said to."""
    realm = lab.realm('--first', '--workers', '0-3')
    agent = lab.agent(realm, conf=CONF).up()
    node = Node(realm)
    node.until(lambda d: d['agents']['all'] == 1, 20, 'a summary')
    zoo = lab.server.client()
    uuid = '01234567-89ab-4def-8123-456789abcdef'
    made = [zoo.create('%s/%s-w%04d-' % (realm.claims_path, uuid, w),
                       b'', EPHEMERAL | SEQUENTIAL)
            for w in range(4) if w != agent.worker()]
    made.append(zoo.create(made[0][:-10], b'', EPHEMERAL | SEQUENTIAL))
    twice = int(made[0].split('-w')[1][:4])

    def both(doc):
        kinds = node.alerts(doc)
        return kinds if {'workers_low', 'duplicate_claim'} <= set(kinds) \
            else None
    kinds = both(node.until(both, 20, 'both alerts'))
    assert kinds['workers_low']['severity'] == 'critical'
    assert kinds['workers_low']['value'] == 0
    assert kinds['duplicate_claim']['worker'] == twice
    assert kinds['duplicate_claim']['severity'] == 'warning'
    assert fleet(realm, 2)['free_workers'] == 0
    for path in made:
        zoo.delete(path)
    zoo.close()
    node.until(lambda d: d['alerts'] == [], 20, 'both are over')
    wait.until(lambda: agent.log().count('cleared') == 2, 10, agent.tail)
    for kind in ('workers_low', 'duplicate_claim'):
        assert agent.log().count('alert %s: ' % kind) == 1, agent.log()
        assert agent.log().count('alert %s cleared: ' % kind) == 1
    assert fleet(realm)['auditor']['claim'] == agent.status()['claim']
    agent.end()
    assert fleet(realm)['auditor'] is None  # nobody audits: as it is
    assert node.look()[0]['auditor']['claim']  # the old one stands there


def test_garbage_is_overwritten_and_a_missing_node_made(lab):
    """Whatever somebody leaves there: agents go on, and it is mended."""
    realm = lab.realm()
    agents = [lab.host(realm, conf=CONF).up() for _ in range(2)]
    node = Node(realm)
    node.until(lambda d: d['agents']['all'] == 2, 20, 'a summary')
    for junk in (b'{', b'{"uuid":1}', b'x' * 100000):
        with lab.server.client() as zoo:
            zoo.set(node.path, junk)

        def mended():
            with lab.server.client() as zoo:
                return zoo.get(node.path)[0].startswith(b'{"uuid":"')
        wait.until(mended, 30, lambda: 'is mended: %s' % agents[0].tail())
    node.last = None
    with lab.server.client() as zoo:
        zoo.delete(node.path)
    node.until(lambda d: d['agents']['all'] == 2, 30, 'it is made again')
    assert all(a.state() == 'serving' for a in agents)


def test_two_write_at_once(lab):
    """Between an auditor's reading and its writing (here more than a second,
    by a slow network) somebody else writes each time: nothing of his is ever
    overwritten, and once he is silent the auditor has its turn."""
    realm = lab.realm()
    proxy = lab.proxy()
    conf = dict(CONF, session_ms=10000, renew_ms=2000, op_deadline_ms=1900)
    agent = lab.agent(realm, hosts=proxy.hosts, conf=conf).up()
    node = Node(realm)
    node.until(lambda d: d['agents']['all'] == 1, 20, 'a summary')
    proxy.slow(DELAY)
    stat, written, begun = None, 0, time.monotonic()
    with lab.server.client() as zoo:
        while agent.log().count('somebody else was faster') < 2:
            try:
                stat = zoo.set(node.path, b'mine, %d' % written,
                               stat.version if stat else -1)
            except BadVersion:
                # from its read to its write at least six frames are late
                assert time.monotonic() - begun > 5 * DELAY, (
                    'overwritten: %s' % (zoo.get(node.path),))
                stat = None  # this machine was that slow
                continue
            begun = time.monotonic()
            written += 1
            assert written < 100, agent.tail()
            time.sleep(3 * DELAY)
    proxy.slow(0)
    print('\n%d written by another one' % written)
    node.last = stat
    node.until(lambda d: d['agents']['all'] == 1, 30, 'goes on')
    assert agent.state() == 'serving'


def test_renewed_realm_moves_by_the_summary(lab):
    """The summary carries the generation."""
    realm = lab.realm('--first', '--reserve-max', '2000')
    conf = dict(CONF, reserve_ms=2000, renew_ms=500, op_deadline_ms=400)
    agents = [lab.agent(realm, conf=conf).up() for _ in range(2)]
    node = Node(realm)
    old = realm.contract()['generation']
    node.until(lambda d: d['generation'] == old, 20, 'a summary')
    firn('realm', 'renew', '--skew-refuse', '1000', '--zk', lab.server.hosts,
         '--realm', realm.name)
    new = realm.contract()['generation']
    doc = node.until(lambda d: d['generation'] == new
                     and d['agents']['all'] == 2, 40, 'of the new one')
    assert doc['uuid'] == realm.contract()['uuid']
    for agent in agents:
        agent.wait_status(lambda d: d['state'] == 'serving'
                          and d['generation'] == new, 40, 'serves there')
