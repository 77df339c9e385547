# SPDX-License-Identifier: Apache-2.0
"""What an agent does while nobody asks it for anything: it sleeps, and each
wake-up is one of its timers' or a reply's that it waits for."""
import os
import time
import uuid

import pytest

from firnlab import wait

RENEW_S, AUDIT_S = 3, 10  # the defaults
SECONDS = 10
DELAY = 0.3  # of each frame, where the network is slow
# Wake-ups a second by thread, in the order of their birth, of an agent that is
# not the auditor.  A mean of none, one or two more comes from the loop's clock,
# which is a tick of the kernel's behind each timer.
EXPECTED = [
    # the loop: its look, the renewal's timer, the replies of write and read
    1 + 3 / RENEW_S,
    # ZooKeeper's client: is told of each of the two, and hears its reply
    4 / RENEW_S,
    # its other thread: hands each reply on
    2 / RENEW_S,
]


def wakeups(pid):
    """How often each thread slept and woke, in the order of their birth."""
    base, counts = '/proc/%d/task/' % pid, []
    for task in sorted(os.listdir(base), key=int):
        with open('%s%s/status' % (base, task)) as f:
            counts.append(next(int(line.split()[1]) for line in f
                               if line.startswith('voluntary_ctxt')))
    return counts


def cpu_seconds(pid):
    with open('/proc/%d/stat' % pid) as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def pair(lab, realm, hosts=None, **conf):
    """Two hosts, the second of which leaves the audit to the first; as they
    are once both have been compared."""
    agents = [lab.agent(realm, hosts=hosts, testing=True,
                        conf=dict(conf, log_level='info'),
                        env={'FIRN_TEST_BOOT_ID': str(uuid.uuid4())}).up()
              for _ in range(2)]
    for agent in agents:
        agent.wait_status(lambda d: d['peers'] == 1, 30, 'a peer')
    return agents


@pytest.mark.real_time
def test_nothing_wakes_it_but_its_timers_and_replies(lab):
    realm = lab.realm()
    _, idle = pair(lab, realm)
    idle.reserves(50000)  # the first window was a short one
    before, begun = wakeups(idle.process.pid), time.monotonic()
    time.sleep(SECONDS)
    after, took = wakeups(idle.process.pid), time.monotonic() - begun
    assert len(after) == len(before) == len(EXPECTED)
    rates = [(b - a) / took for a, b in zip(before, after)]
    print('\nwake-ups a second: loop %.2f, client %.2f, %.2f; in all %.2f'
          % (*rates, sum(rates)))
    for rate, expected in zip(rates, EXPECTED):
        assert rate < 3 * expected, (rates, EXPECTED)
    assert sum(rates) < 2 * sum(EXPECTED), (rates, EXPECTED)


@pytest.mark.real_time
def test_it_sleeps_while_a_reply_is_late(lab):
    """More than half of the time something is under way."""
    realm = lab.realm()
    proxy = lab.proxy()
    _, idle = pair(lab, realm, proxy.hosts, session_ms=10000, renew_ms=2000,
                   op_deadline_ms=1900)
    proxy.slow(DELAY)
    path = realm.mark_path(idle.worker())
    with lab.server.client() as zoo:
        first = zoo.exists(path).version
        cpu, begun = cpu_seconds(idle.process.pid), time.monotonic()
        wait.until(lambda: zoo.exists(path).version >= first + 4, 30,
                   'four renewals')
    took = time.monotonic() - begun
    cpu = cpu_seconds(idle.process.pid) - cpu
    print('\n%.3f s of the processor in %.1f s' % (cpu, took))
    assert cpu < took / 20
    proxy.slow(0)
