# SPDX-License-Identifier: Apache-2.0
"""Peers of every bad kind: each costs that peer only.

Beside each a good client, whose times (in us: 50 %, 99 %, the longest) are
printed with those of the same client just before.  Nothing is asserted of times, but of what fails, what is
closed, how much memory it takes and how long the log gets.
"""
import errno
import json
import os
import resource
import select
import signal
import subprocess
import time

import pytest

from firnlab import wait
from firnlab.build import SOURCE, program
from firnlab.process import Process

# One after another, also because a flood would slow down other tests.
pytestmark = pytest.mark.real_time

KIB = 1024
LOG_LINES = 200  # of all attacks together, and what an agent says anyway
QUIET = {'log_level': 'info'}


class Peer:
    """One badpeer; see its head for the kinds."""

    started = 0

    def __init__(self, agent, kind, *args):
        Peer.started += 1
        self.kind = kind
        self.unread = b''
        self.log = '%s.%s%d.log' % (agent.base, kind, Peer.started)
        self.process = Process(
            [program('badpeer'), kind, agent.socket] + [str(a) for a in args],
            self.log, stdout=subprocess.PIPE)
        if kind == 'good':
            self.line()

    def line(self, seconds=60):
        """The next object that it prints."""
        fd = self.process.popen.stdout.fileno()
        end = time.monotonic() + seconds * wait.PATIENCE
        while b'\n' not in self.unread:
            ready, _, _ = select.select([fd], [], [],
                                        max(0, end - time.monotonic()))
            more = os.read(fd, 4096) if ready else b''
            assert more, '%s printed no line: %s' % (self.kind,
                                                     self.process.text())
            self.unread += more
        text, self.unread = self.unread.split(b'\n', 1)
        return json.loads(text)

    def period(self):
        """What the good one measures from now on."""
        self.process.signal(signal.SIGUSR1)
        seen = self.line()
        assert seen['failed'] == 0, seen
        return seen

    def stop(self):
        """Ends it; what it counted."""
        self.process.signal(signal.SIGTERM)
        seen = None if self.kind == 'good' else self.line()
        assert self.process.wait(60) == 0, self.process.text()
        return seen


@pytest.fixture
def peers():
    started = []

    def start(*args):
        started.append(Peer(*args))
        return started[-1]
    yield start
    for peer in started:
        if peer.process.running():
            peer.process.kill()
        peer.process.popen.stdout.close()


class Cost:
    """What an agent has used up since."""

    def __init__(self, agent):
        self.pid = agent.process.pid
        self.cpu, self.time = self.read(), time.monotonic()

    def read(self):
        with open('/proc/%d/stat' % self.pid) as f:
            fields = f.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def share(self):
        return 100 * (self.read() - self.cpu) / (time.monotonic() - self.time)


def resident(agent):
    """Bytes, now."""
    with open('/proc/%d/statm' % agent.process.pid) as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def times(seen):
    return '%6.0f %6.0f %7.0f' % (seen['p50_us'], seen['p99_us'],
                                  seen['max_us'])


def alone_again(agent, clients=2):
    """Waits until nobody but the good one (and this question) is there."""
    agent.wait_status(lambda d: int(d['clients']) <= clients, 30,
                      'the others are gone')


# kind, connections, and whether the agent has to end each of them
ATTACKS = [('drip', 20, False), ('version', 1, True), ('bad', 1, True),
           ('deaf', 50, False), ('mute', 200, False), ('cut', 1, False),
           ('flood', 1, False), ('greedy', 7, False), ('liar', 100, False)]


def attack(agent, good, peers, kind, connections, must_end):
    before = good.period()
    peer = peers(agent, kind, connections)
    if kind in ('drip', 'deaf', 'mute', 'greedy', 'liar'):
        assert peer.line()['done'] == connections
    cost = Cost(agent)
    during = good.period()
    share = cost.share()
    new = peers(agent, 'brief', 1, 50).line()
    seen = peer.stop()
    assert (new['done'], new['wrong']) == (50, 0), (kind, new)
    alone_again(agent, 2 + HALVES)
    print('%-8s %s | %s | %8d done, %3.0f %% CPU, %5d KiB' % (
        kind, times(before), times(during), seen['done'], share,
        resident(agent) // KIB))
    assert seen['wrong'] == 0, (kind, seen)
    assert seen['done'] > 0 or kind == 'mute'
    if kind == 'deaf':
        print('         %d bytes each lie unread' % (
            seen['held'] / connections))
        assert seen['held'] < connections * 32 * KIB
    if must_end:
        assert seen['ended'] == seen['done'], (kind, seen)


HALVES = 100  # half requests, from the beginning to the end


def test_each_costs_that_peer_only(lab, peers):
    """All kinds, one after another, beside one good client; half a request
    is closed after its 10 s, by when the others had their turn."""
    agent = lab.agent(lab.realm(), conf=QUIET).up()
    good = peers(agent, 'good', 1, 200)
    good.period()
    half = peers(agent, 'half', HALVES)
    assert half.line()['done'] == HALVES
    for kind, connections, _ in ATTACKS:  # what is kept for reuse, is
        if kind in ('deaf', 'mute'):
            peer = peers(agent, kind, connections)
            peer.line()
            peer.stop()
    first = resident(agent)
    print('\nus       before: 50 %   99 %     max | during: 50 %  99 %     max')
    for row in ATTACKS:
        attack(agent, good, peers, *row)
    alone_again(agent)
    seen = half.stop()
    assert (seen['ended'], seen['wrong']) == (HALVES, 0)
    lines = len(agent.log().splitlines())
    print('resident %d -> %d KiB; %d lines in the log' % (
        first // KIB, resident(agent) // KIB, lines))
    assert resident(agent) < first + 4096 * KIB
    assert lines < LOG_LINES, agent.tail()
    assert 'conn ' in agent.log()


def test_ten_thousand_idle(lab, peers):
    """They cost their memory, the same each time, and the good one nothing."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    count = min(10000, limit - 200)
    agent = lab.agent(lab.realm(), conf=dict(QUIET, max_clients=20000)).up()
    good = peers(agent, 'good', 1, 500)
    good.period()
    first = resident(agent)
    cost = Cost(agent)
    before, share = good.period(), cost.share()
    full = []
    print('\nbefore   %s us, %.1f %% CPU' % (times(before), share))
    for _ in range(2):
        mute = peers(agent, 'mute', count)
        assert mute.line()['done'] == count
        agent.wait_status(lambda d: int(d['clients']) >= count, 30, 'all are in')
        cost = Cost(agent)
        during, share = good.period(), cost.share()
        full.append(resident(agent))
        print('%6d   %s us, %.1f %% CPU, %.0f bytes each' % (
            count, times(during), share, (full[-1] - first) / count))
        seen = mute.stop()
        assert (seen['ended'], seen['wrong']) == (0, 0)
        alone_again(agent)
    assert full[0] - first < count * 8 * KIB
    assert full[1] - first < 1.3 * (full[0] - first)
    good.period()


# -- accept -----------------------------------------------------------------

@pytest.mark.short
def test_descriptors_run_out(lab, peers):
    """With room for 20, 100 at a time come and go without a pause each."""
    agent = lab.agent(lab.realm(), conf=QUIET).up()
    good = peers(agent, 'good', 1, 300)
    before = good.period()
    slots = len(os.listdir('/proc/%d/fd' % agent.process.pid)) + 20
    limits = resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE,
                     (slots, limits[1]))
    started = time.monotonic()
    brief = peers(agent, 'brief', 100, 3000)
    seen = brief.line()
    took = time.monotonic() - started
    print('\n%s us; 3000 newcomers took %.2f s' % (times(before), took))
    assert (seen['done'], seen['wrong']) == (3000, 0)
    assert took < 50  # 20 a second would take 150 s
    mute = peers(agent, 'mute', 100)
    mute.line()
    cost = Cost(agent)
    during = good.period()
    print('%s us with none left, %.1f %% CPU' % (times(during), cost.share()))
    # one more waits, until one of them leaves
    late = peers(agent, 'brief', 1, 1)
    mute.stop()
    seen = late.line()
    assert (seen['done'], seen['wrong']) == (1, 0)
    wait.until(lambda: 'accepts all again' in agent.log(), 10, agent.tail)
    assert len(agent.log().splitlines()) < LOG_LINES, agent.tail()
    resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, limits)


@pytest.fixture(scope='module')
def acceptfault(tmp_path_factory):
    path = str(tmp_path_factory.mktemp('accept') / 'acceptfault.so')
    subprocess.run([os.environ.get('CC', 'cc').split()[0], '-D_GNU_SOURCE',
                    '-shared', '-fPIC', '-o', path,
                    SOURCE + '/tests/e2e/acceptfault.c', '-ldl'], check=True)
    return path


def test_accept_fails(lab, peers, acceptfault):
    """No file left in the whole system, or a security module that says no:
    who is in goes on, who waits gets in afterwards, nothing spins."""
    base = lab.dir + '/fault'
    agent = lab.agent(lab.realm(), conf=QUIET, env={
        'LD_PRELOAD': acceptfault, 'FIRN_ACCEPT_FAULT': base}).up()
    good = peers(agent, 'good', 1, 300)
    print()
    for error in (errno.ENFILE, errno.EPERM):
        before = good.period()
        with open(base, 'w') as f:
            f.write(str(error))
        late = peers(agent, 'brief', 1, 1)
        wait.until(lambda: os.path.exists(base + '.calls'), 20, agent.tail)
        started = time.monotonic()
        during = good.period()
        calls = os.path.getsize(base + '.calls')
        print('%s  %s | %s us; %d calls of accept' % (
            errno.errorcode[error], times(before), times(during), calls))
        assert calls <= 2 + (time.monotonic() - started) * 2
        os.unlink(base)
        seen = late.line()
        assert (seen['done'], seen['wrong']) == (1, 0)
        os.unlink(base + '.calls')
        wait.until(lambda: os.strerror(error) in agent.log(), 5, agent.tail)


# -- ticks and requests --------------------------------------------------------

def realm_of(lab, tick_ms):
    """A realm with ticks of so many ms."""
    if tick_ms == 10:
        return lab.realm('--layout', 'sonyflake', '--first')
    realm = lab.realm()
    contract = realm.contract()
    contract['tick_ms'] = tick_ms
    with lab.server.client() as zoo:
        zoo.set(realm.path, json.dumps(contract).encode())
    return realm


@pytest.mark.parametrize('tick_ms', [1, 10, 1000])
def test_one_beside_seven_greedy(lab, peers, tick_ms):
    """Seven that want a million at a time leave one its ID: it has many in a
    tick of a second, none of which waits for the next."""
    agent = lab.agent(realm_of(lab, tick_ms), conf=QUIET).up()
    assert agent.status()['tick_ms'] == tick_ms
    good = peers(agent, 'good', 1, 100)
    before = good.period()
    greedy = peers(agent, 'greedy', 7)
    greedy.line()
    started = time.monotonic()
    during = good.period()
    took = time.monotonic() - started
    seen = greedy.stop()
    print('\n%4d ms  %s | %s us; greedy %d IDs in %.1f s' % (
        tick_ms, times(before), times(during), seen['done'], took))
    assert seen['wrong'] == 0
    if tick_ms == 1000:
        assert took < 50  # one in a tick would take 100 s


def test_thousands_of_requests_at_once(lab, peers):
    """Nothing is lost and all come in their order, however many are sent
    before the first reply is read."""
    agent = lab.agent(lab.realm(), conf=QUIET).up()
    first = resident(agent)
    pipeline = [peers(agent, 'pipeline', 1, 20000) for _ in range(4)]
    ahead = [p.line()['ahead'] for p in pipeline]
    grown = resident(agent) - first
    print('\nsent ahead of the first reply: %s; %d KiB more' % (
        ahead, grown // KIB))
    for p in pipeline:
        seen = p.line()
        assert (seen['done'], seen['wrong']) == (20000, 0), seen
    assert min(ahead) > 1000
    assert grown < 4096 * KIB
