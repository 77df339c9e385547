# SPDX-License-Identifier: Apache-2.0
"""What others leave in ZooKeeper: claims, marks and contracts that make no
sense, are large, many, or not to be read.

The agents go on, tell each such node in one line, judge the clocks of the good
ones as before, and delete nothing that is not theirs.
"""
import glob
import os
import re
import time

import pytest

from firnlab import wait
from firnlab.build import CONFIG, firn
from firnlab.jute import MAY_ALL, READ, WRITE
from firnlab.load import check

LARGE = b'{"a":"' + b'x' * 1048000 + b'"}'  # just under what a server takes
TAG = '0' * 32
MARK = ('{"ceiling_tick":%s,"owner":"%s","tag":"' + TAG + '"%s}')
STATUS = ('{"state":"serving","reason":"","host":"h","version":"1","pid":%s,'
          '"boot_id":"%s"%s}')
BOOT = '00112233-4455-4677-8899-aabbccddee%02x'
OFFSET = (',"offset_us":%s,"error_us":"1","stamp_ms":"1735689700000",'
          '"epoch":"0","skew_us":"0"')

# Renewals often, so that little is waited for.
SWIFT = {'session_ms': 4000, 'renew_ms': 300, 'op_deadline_ms': 250,
         'reserve_ms': 60000, 'audit_ms': 1000}
GROWTH_MAX = 64 << 20  # of an agent's memory: a bound for what never ends

# What is written where a mark should stand, and into the claim beside it.
GARBAGE = {
    'not JSON': (b'not json', b'not json'),
    'nothing': (b'', b''),
    'no text': (b'\xff\xfe\x00\x01', b'\xff\xfe\x00\x01'),
    'almost a megabyte': (LARGE, LARGE),
    'deep': (b'[' * 60000, b'{"a":' * 10000),
    'a key twice': (b'{"ceiling_tick":"1","ceiling_tick":"2"}',
                    b'{"status":{},"status":{}}'),
    '1e400': ((MARK % ('1e400', 'a', '')).encode(),
              ('{"status":' + STATUS % ('1e400', BOOT % 1, '') + '}').encode()),
    '2^63': ((MARK % ('9223372036854775808', 'a', '')).encode(),
             ('{"status":' + STATUS % ('1', BOOT % 2, OFFSET
                                       % '"9223372036854775808"')
              + '}').encode()),
    '2^53 + 1': ((MARK % ('9007199254740993', 'a', '')).encode(),
                 ('{"status":' + STATUS % ('1', BOOT % 3, OFFSET
                                           % '9007199254740993')
                  + '}').encode()),
    'a list': (b'[1,2,3]', b'["status"]'),
    'half': (b'{"ceiling_tick":"1","ow', b'{"status":{"state":"ser'),
}
NO_CLAIMS = ['lost+found', '00112233-4455-4677-8899-aabbccddeeff-w-12',
             '00112233-4455-4677-8899-AABBCCDDEEFF-w-0000000001',
             '00112233-4455-4677-8899-aabbccddeeff-w-0000000001.bak',
             'x' * 300, 'n\u00e4me']
NO_MARKS = ['17', '00017', '0017x', '-001', '9999', 'fleet']


def claim_name(worker):
    return '%s-w%04d-%010d' % (BOOT % (worker % 200), worker, worker)


def rss(agent):
    with open('/proc/%d/statm' % agent.process.pid) as f:
        return int(f.read().split()[1]) * os.sysconf('SC_PAGESIZE')


def cpu_ms(agent):
    total = 0
    for name in glob.glob('/proc/%d/task/*/schedstat' % agent.process.pid):
        with open(name) as f:
            total += int(f.read().split()[0])
    return total / 1e6


def told(agent, *words):
    """Lines above `info` with all these words."""
    return [line for line in agent.log().splitlines()
            if (' warn' in line or 'error' in line)
            and all(w in line for w in words)]


def told_once(agent, path):
    """One line that ends the path there, and says more than the path."""
    lines = told(agent, path + ': ')
    assert len(lines) == 1, (path, lines, agent.tail())
    return lines[0]


def renewals(realm, agents, more, seconds=20):
    """Waits until each has written its mark so many times more."""
    marks = [realm.mark_path(a.worker()) for a in agents]
    with realm.server.client() as zoo:
        goal = [zoo.exists(m).version + more for m in marks]
        wait.until(lambda: all(zoo.exists(m).version >= g
                               for m, g in zip(marks, goal)), seconds,
                   'each renews %d times' % more)


def fleet(lab, realm):
    return firn('fleet', '--zk', lab.server.hosts, '--realm', realm.name)


def fleet_json(lab, realm):
    return firn('fleet', '--json', '--zk', lab.server.hosts, '--realm',
                realm.name).json


def take_figures(agents, loads, before, what):
    """Prints them; bounds what would grow without an end."""
    for agent, old in zip(agents, before):
        grown = rss(agent) - old
        print('%s: %s has grown by %d KiB to %d' % (
            what, agent.name, grown >> 10, rss(agent) >> 10))
        assert grown < GROWTH_MAX, (agent.name, grown)
    for load in loads:
        result = load.stop()
        assert result['failed'] == 0, result
        print('%s: a client waited for %.1f ms at most' % (
            what, result['longest_ms']))


def write_garbage(zoo, realm):
    """A claim and its mark of each kind; returns all paths."""
    claims, marks = realm.claims_path, realm.marks_path
    paths = []
    for i, (mark, claim) in enumerate(GARBAGE.values()):
        paths += ['%s/%s' % (claims, claim_name(900 + i)),
                  '%s/%04d' % (marks, 900 + i)]
        zoo.create(paths[-2], claim)
        zoo.create(paths[-1], mark)
    paths += ['%s/%s' % (claims, claim_name(950)), '%s/0950' % marks]
    for path in paths[-2:]:
        zoo.create(path, b'{}')
        zoo.allow(path, MAY_ALL - READ)
    return paths


# ---- claims and marks --------------------------------------------------------

def test_garbage_beside_the_good(lab):
    """Every kind at once, beside three hosts: they serve, their clocks are
    judged as before, and who is off by 11 s refuses."""
    realm = lab.realm()
    hosts = [lab.host(realm, conf=SWIFT).start() for _ in range(3)]
    for host in hosts:
        host.serving().wait_status(lambda d: d['peers'] == 2, 15, 'two peers')
    renewals(realm, hosts, 3)
    loads = [lab.load(h, rate=200, timeout=5000) for h in hosts[:2]]
    before = [rss(h) for h in hosts]
    with lab.server.client() as zoo:
        bad = write_garbage(zoo, realm)
        others = ['%s/%s' % (realm.claims_path, n) for n in NO_CLAIMS]
        beside = ['%s/%s' % (realm.marks_path, n) for n in NO_MARKS]
        for path in others + beside:
            zoo.create(path, b'whatever')
        written = {p: zoo.exists(p) for p in bad + others + beside}
    # the auditor reads all, and whoever judges by himself
    wait.until(lambda: all(any(told(h, p + ': ') for h in hosts)
                           for p in bad), 20,
               lambda: 'each is told: %s' % hosts[0].tail())
    renewals(realm, hosts, 12)
    auditor = max(hosts, key=lambda h: sum(len(told(h, p)) for p in bad))
    for path in bad + others[:5]:
        told_once(auditor, path)
    assert len(told(auditor, 'its name is no claim')) == len(others)
    for host in hosts:
        for path in bad + others[:5]:
            assert len(told(host, path + ': ')) <= 1, host.tail()
        host.wait_status(
            lambda d: d['state'] == 'serving' and d['peers'] == 2
            and abs(d['skew_ms']) < 2000, 10, 'judged as before')
    assert 'too many' in told_once(auditor, bad[7])
    assert 'too deep' in told_once(auditor, bad[9])
    assert 'not allowed' in told_once(auditor, bad[-1])

    # who is off is found, and only he: at its start, and when it steps
    far = lab.host(realm, 11, conf=SWIFT).start()
    assert 10000 < far.refuses('clock_skew', 20)['skew_ms'] < 12000
    hosts[2].clock.step(11)
    wait.until(lambda: told(hosts[2], 'clock_step', 'not followed'), 20,
               hosts[2].tail)
    for host in hosts:
        assert host.state() == 'serving' and not told(host, 'skew_refuse')
    text = fleet(lab, realm).out
    assert 'clock_skew' in text and text.count(' serving ') >= 3, text
    for name in [os.path.basename(p) for p in bad + others[:4] + beside]:
        lines = [x for x in text.splitlines()
                 if re.match(r'warning: \w+: (claim|mark|node) %s: .'
                             % re.escape(name), x)]
        assert len(lines) == 1, (name, lines, text)
    doc = fleet_json(lab, realm)
    assert len([a for a in doc['alerts'] if a['kind'] == 'garbled_node']) == \
        2 * len(GARBAGE), doc['alerts']
    assert len([a for a in doc['agents'] if a['state']]) == 4
    far.clock.set(0)
    far.serving()

    take_figures(hosts, loads, before, 'garbage')
    check(loads)
    with lab.server.client() as zoo:
        for path, stat in written.items():
            assert zoo.exists(path) == stat, path


def test_an_agent_finds_its_way_through_bad_marks(lab):
    """Of five worker IDs four have marks that are garbage, too large, not to
    be read, not to be written: an agent comes to the fifth."""
    realm = lab.realm('--first', '--workers', '0-4')
    good = (MARK % ('"0"', '', '')).encode()
    with lab.server.client() as zoo:
        for worker, data, allowed in ((0, b'not json', MAY_ALL),
                                      (1, LARGE, MAY_ALL),
                                      (2, good, MAY_ALL - READ),
                                      (3, good, MAY_ALL - WRITE),
                                      (4, good, MAY_ALL)):
            zoo.create(realm.mark_path(worker), data)
            zoo.allow(realm.mark_path(worker), allowed)
    first = lab.agent(realm, conf=SWIFT).up(30)
    assert first.worker() == 4
    for worker in range(4):
        # it may have come by the good one before the others
        assert len(told(first, realm.mark_path(worker) + ': ')) <= 1
    late = lab.agent(realm, conf=SWIFT).start()
    wait.until(lambda: all(told(late, realm.mark_path(w) + ': ')
                           for w in range(4)), 40,
               lambda: 'it has seen all four: %s' % late.tail())
    late.refuses('no_claim', 10)
    for worker in range(4):
        told_once(late, realm.mark_path(worker))
    assert first.state() == 'serving'
    with lab.server.client() as zoo:
        zoo.allow(realm.mark_path(3), MAY_ALL)
    late.serving(60)
    assert late.worker() == 3


@pytest.mark.short
def test_the_own_mark(lab):
    """Not to be read: nobody has to.  Nor to be written: it uses up its
    window, refuses, and goes on when it is mended.  Overwritten: another
    worker ID, at once."""
    realm = lab.realm('--first', '--reserve-max', '3000')
    conf = dict(SWIFT, reserve_ms=3000)
    agent = lab.agent(realm, conf=conf).up()
    worker = agent.worker()
    path = realm.mark_path(worker)
    load = lab.load(agent, rate=200, timeout=5000)
    with lab.server.client() as zoo:
        zoo.allow(path, MAY_ALL - READ)
        renewals(realm, [agent], 5)
        load.takes(100)
        lines = len(told(agent, path))  # one for each reader of all marks
        zoo.allow(path, MAY_ALL - READ - WRITE)
        agent.refuses('window_spent', 20)
        # the write's own line; a late reader may have its one yet
        assert 1 <= len(told(agent, path + ': not allowed')) <= lines + 3
        text = fleet(lab, realm).out
        assert text.count('mark %04d: not allowed' % worker) == 1, text
        zoo.allow(path, MAY_ALL)
        agent.serving()
        assert agent.worker() == worker
        load.takes(100)
        assert len(told(agent, path)) <= lines + 3, agent.tail()

        zoo.set(path, b'not json')
        agent.wait_status(lambda d: d['state'] == 'serving'
                          and int(d['worker']) != worker, 20, 'another ID')
        load.takes(100)
        assert len(told(agent, 'by hand', 'given up')) == 1, agent.tail()
        text = fleet(lab, realm).out
        assert text.count('mark %04d: line 1' % worker) == 1, text
        assert zoo.get(path)[0] == b'not json'
    load.stop()
    check([load])


# ---- the contract ------------------------------------------------------------

@pytest.mark.short
def test_the_realm_node(lab):
    """A contract that makes no sense: who starts refuses in one line, who
    serves goes on in its window, and both go on when it is mended."""
    realm = lab.realm()
    conf = SWIFT
    old = lab.agent(realm, conf=conf).up().reserves(30000)
    load = lab.load(old, rate=200, timeout=5000)
    with lab.server.client() as zoo:
        contract = zoo.get(realm.path)[0]
        for data, words in ((b'not json', 'line 1, column 1'),
                            (LARGE, 'bytes are too many'),
                            (b'{"format":1e400}', 'format: must be'),
                            (b'{"format":1,"format":1}', 'twice')):
            zoo.set(realm.path, data)
            late = lab.agent(realm, conf=conf).start()
            late.refuses('no_realm', 20)
            late.wait_status(lambda d: 'its contract makes no sense'
                             in d.get('words', ''), 20, 'told as it is')
            for agent in (old, late):
                wait.until(lambda: told(agent, realm.path + ': ', words), 20,
                           agent.tail)
            wait.holds(lambda: old.state() == 'serving', 0.3, old.tail)
            status = firn('fleet', '--zk', lab.server.hosts, '--realm',
                          realm.name, status=CONFIG)
            assert words in status.err and status.err.count('\n') == 1
            zoo.set(realm.path, contract)
            late.serving()
            assert len(told(late, realm.path + ': ')) == 1, late.tail()
            late.end()
        assert len(told(old, realm.path + ': ')) == 4, old.tail()

        zoo.allow(realm.path, MAY_ALL - READ)
        late = lab.agent(realm, conf=conf).start()
        late.refuses('no_realm', 20)
        wait.until(lambda: told(late, realm.path + ': not allowed'), 20,
                   late.tail)
        zoo.allow(realm.path, MAY_ALL)
        late.serving()
        told_once(late, realm.path)
        assert old.state() == 'serving'

        # a later program's: exit status 78 with both values, for all
        load.stop()
        for agent in (old, late):
            agent.may_fail = True
        zoo.set(realm.path, b'{"format":99}')
        for agent in (old, late):
            assert agent.process.wait(20) == CONFIG, agent.tail()
            assert len(told(agent, 'format 99, this firnd knows 1')) == 1
    check([load])


# ---- much --------------------------------------------------------------------

def test_ten_megabytes(own_lab):
    """On a server that takes them: as a claim, a mark and the contract.  They
    are read once, and no session falls."""
    lab = own_lab
    lab.own_server(java=['-Djute.maxbuffer=20000000', '-Xmx512m'])
    realm = lab.realm()
    agents = [lab.agent(realm, conf=SWIFT, testing=True, env={
        'FIRN_TEST_BOOT_ID': BOOT % i}).start() for i in range(3)]
    for agent in agents:
        agent.serving().wait_status(lambda d: d['peers'] == 2, 15, 'peers')
        agent.reserves(30000)
    loads = [lab.load(a, rate=200, timeout=5000) for a in agents]
    before = [rss(a) for a in agents]
    huge = b'[' * (10 << 20)
    claim = '%s/%s' % (realm.claims_path, claim_name(900))
    mark = realm.mark_path(900)
    with lab.server.client(30) as zoo:
        contract = zoo.get(realm.path)[0]
        for path in (claim, mark):
            zoo.create(path, huge)
        wait.until(lambda: any(told(a, claim) and told(a, mark)
                               for a in agents), 20, agents[0].tail)
        renewals(realm, agents, 5)
        zoo.set(realm.path, huge)
        for agent in agents:
            wait.until(lambda: told(agent, realm.path + ': '), 20, agent.tail)
        wait.holds(lambda: all(a.state() == 'serving' for a in agents), 1,
                   'they serve')
        zoo.set(realm.path, contract)
    renewals(realm, agents, 3)
    for agent in agents:
        for path in (mark, claim):
            lines = told(agent, path + ': ')
            assert len(lines) <= 1, lines
            assert all('10485760 bytes are too many' in x for x in lines)
        told_once(agent, realm.path)
        # a session that fell for each would fall three times a second
        assert len(told(agent, 'disconnected')) < 5, agent.tail()
        agent.wait_status(lambda d: d['peers'] == 2, 10, 'peers')
    text = fleet(lab, realm).out
    assert text.count('10485760 bytes are too many') == 2, text
    late = lab.agent(realm, conf=SWIFT).up()
    wait.until(lambda: told(late, mark), 20, late.tail)
    take_figures(agents, loads, before, 'ten megabytes')
    check(loads)


def test_five_thousand_children(lab):
    """Beside the claims and beside the marks: an agent claims, serves, says so
    in one line; what a renewal costs is printed."""
    realm = lab.realm()
    old = lab.agent(realm, conf=SWIFT).up()
    load = lab.load(old, rate=200, timeout=5000)
    before = [rss(old)]

    def cost():
        renewals(realm, [old], 1)
        begun, busy = time.monotonic(), cpu_ms(old)
        renewals(realm, [old], 10)
        return (cpu_ms(old) - busy) / 10, time.monotonic() - begun
    alone = cost()
    with lab.server.client() as zoo:
        for parent in (realm.claims_path, realm.marks_path):
            zoo.create_many(['%s/someone-else-%05d' % (parent, i)
                             for i in range(5000)])
    begun = time.monotonic()
    late = lab.agent(realm, conf=SWIFT).up()
    print('among 5000 children an agent serves after %.2f s'
          % (time.monotonic() - begun))
    among = cost()
    print('CPU of a renewal: %.1f ms alone, %.1f ms among 5000' % (
        alone[0], among[0]))
    for agent in (old, late):
        wait.until(lambda: told(agent, 'many nodes there are no claims'), 20,
                   agent.tail)
        told_once(agent, realm.claims_path)
        assert agent.state() == 'serving'
    text = fleet(lab, realm).out
    assert '5000 nodes, such as someone-else-' in text and \
        text.count('someone-else') == 2, text
    take_figures([old], [load], before, '5000 children')
    late.end()
    old.end()
    with lab.server.client() as zoo:
        for parent in (realm.claims_path, realm.marks_path):
            names = [n for n in zoo.list(parent)[0] if 'someone' in n]
            assert len(names) == 5000
    told_of = firn('realm', 'renew', '--zk', lab.server.hosts, '--realm',
                   realm.name).err
    assert told_of.count('5000 nodes beside the marks') == 1, told_of
    check([load])
