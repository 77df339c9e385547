# SPDX-License-Identifier: Apache-2.0
"""The table: which figure, against which target, beside which peer."""
import statistics
from collections import namedtuple

from report import quantity

# figure: a name in values (its median), or a function of all medians.
# limit: with a peer the largest ratio to it (or the smallest, at_least), else
# of the figure itself.  None: stated, not judged.
Row = namedtuple('Row', 'what figure unit limit peer peer_name at_least')


def row(what, figure, unit, limit=None, peer=None, peer_name='',
        at_least=False):
    return Row(what, figure, unit, limit, peer, peer_name, at_least)


ROWS = [
    row('`firn_next` from the cache, one thread', 'next_1_thread', 'ns',
        0.7, 'uuid', 'libuuid with uuidd'),
    row('the same', 'next_1_thread', 'ns', 0.2, 'generator',
        'mutex and clock in the process'),
    row('the same, time of the processor alone', 'next_1_thread_cpu', 'ns',
        None, 'generator_cpu', 'mutex and clock in the process'),
    row('at 1 M IDs/s, refills included: p99.9', 'paced_p99.9', 'ns', 1000,
        None, ''),
    row('the same: worst, not preempted', 'paced_own', 'ns', 0.1,
        'uuid_paced_own', 'libuuid with uuidd'),
    row('… of the calls that refilled: p50', 'paced_refill_p50', 'ns'),
    row('… of the calls that refilled: worst', 'paced_refill_max', 'ns',
        None, 'uuid_paced_own', 'libuuid with uuidd, any call'),
    row('the same loop taking nothing: worst', 'control_own', 'ns'),
    row('two threads on one handle', 'next_2_threads_gain', 'times', 1.8,
        at_least=True),
    row('IDs that both threads got', 'next_2_threads_twice', '', 0),
    row('`firn_next_many`, 4096 a call: one ID', 'next_many_4096', 'ns', 1.5),
    row('one uncached ID: p50', 'uncached_p50', 'ns', 0.5, 'redis_p50',
        'Redis INCR'),
    row('one uncached ID: p99', 'uncached_p99', 'ns', 0.5, 'redis_p99',
        'Redis INCR'),
    row('the same: p50', 'uncached_p50', 'ns', None, 'postgres_p50',
        'PostgreSQL nextval'),
    row('the same: p99', 'uncached_p99', 'ns', None, 'postgres_p99',
        'PostgreSQL nextval'),
    row('the same: p50', 'uncached_p50', 'ns', None, 'echo_p50',
        'a process that only echoes'),
    row('a short program: open, one ID, close: p50', 'short_p50', 'ns',
        150000),
    row('saturation, 1 client, of 4,096,000 IDs/s', 'saturation_1', '%', 99.9,
        at_least=True),
    row("… agent's share of a core", 'saturation_1_cpu', '%', 10),
    row('saturation, 8 clients, of 4,096,000 IDs/s', 'saturation_8', '%',
        99.9, at_least=True),
    row("… agent's share of a core", 'saturation_8_cpu', '%', 10),
    row('saturation, 41/8/14, 8 clients, of 16,384,000 IDs/s',
        'saturation_eight', '%', 99.5, at_least=True),
    row('one ID each ms beside 7 greedy clients: p99', 'meter_p99', 'ns',
        5000000),
    row('100 active clients beside 9,900 idle ones: p99', 'crowd_beside_p99',
        'ns', 2, 'crowd_alone_p99', 'the 100 alone'),
    row('memory of the agent for a connection',
        lambda m: max(m['crowd_bytes'], 0), 'bytes'),
    row('agent, idle: resident', 'idle_rss_mb', 'MiB', 8),
    # its look each second; each 3 s the renewal's timer, and a write and two
    # reads, each of which wakes its loop once, ZooKeeper's client twice and
    # that one's other thread once; each 10 s, as it audits, a timer and seven
    # more of these: 8.5 in all.  In a fleet, where one read does and another
    # one audits, it is 4 (tests/e2e/test_idle.py).
    row('agent, idle, alone and so the auditor: wake-ups a second, all '
        'threads', 'idle_wakeups', '', 10),
    row('agent: exec to first ID, ZooKeeper up', 'first_ms', 'ms', 100),
    row('1,000 sessions, a write and a read each 3 s: write p50',
        'zk_set_p50', 'ns'),
    row('… write p99', 'zk_set_p99', 'ns'),
    row('… read p99', 'zk_get_p99', 'ns'),
    row("… server's share of a core", 'zk_cpu', '%'),
    row('`firn_uuid4`', 'uuid4', 'ns', 40),
    row('the same', 'uuid4', 'ns', None, 'libuuid_random',
        '`uuid_generate_random`'),
    row('`firn_uuid7`', 'uuid7', 'ns', 50),
    row('`firn_ulid`', 'ulid', 'ns', 50),
    row('`firn_ksuid`', 'ksuid', 'ns'),
    row('instructions of a cached `firn_next`', 'instructions_next', ''),
    row('instructions of a request in the agent', 'instructions_request', ''),
]
PEER_OF = {'uuid': 'uuidd', 'redis': 'Redis', 'postgres': 'PostgreSQL'}


def figure_of(row, medians):
    if callable(row.figure):
        return row.figure(medians)
    return medians.get(row.figure)


def target_of(row):
    if row.limit is None:
        return ''
    bound = 'at least' if row.at_least else 'at most'
    if row.peer:
        return '%s %g of it' % (bound, row.limit)
    return '%s %s' % (bound, quantity(row.limit, row.unit))


def why_absent(row, absent):
    if row.peer is None:
        return absent.get('valgrind', 'not measured')
    return absent.get(PEER_OF.get(row.peer.split('_')[0]), 'not measured')


def judge(values, absent):
    """A list of dictionaries, ready to be printed."""
    medians = {name: statistics.median(v) for name, v in values.items()}
    # what must never happen is not a matter of medians
    medians['next_2_threads_twice'] = sum(
        values.get('next_2_threads_twice', []))
    medians['crowd_bytes'] = max(values.get('crowd_bytes', [0]))
    judged = []
    for r in ROWS:
        figure = figure_of(r, medians)
        peer = medians.get(r.peer) if r.peer else None
        ratio = figure / peer if figure is not None and peer else None
        measured = ratio if r.peer else figure
        if measured is None and (r.peer or figure is None):
            verdict = why_absent(r, absent)
        elif r.limit is None:
            verdict = ''
        elif (measured >= r.limit if r.at_least else measured <= r.limit):
            verdict = 'met'
        else:
            verdict = 'missed'
        judged.append(dict(
            what=r.what, figure=figure, unit=r.unit, target=target_of(r),
            peer_name=r.peer_name, peer=peer, ratio=ratio, verdict=verdict))
    return judged
