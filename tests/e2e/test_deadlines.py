# SPDX-License-Identifier: Apache-2.0
"""How late libfirn's calls are when the agent stops (SIGSTOP) under them.

Every bound is relative to a bare sleep of the same length in the same run: a
machine that is busy delays both.  (Stopped within a reply: test_stub.)
"""
import pytest

from firnlab.app import App

TIMEOUT_MS = 20
CALLS = 20


@pytest.fixture
def agent(bare_lab):
    return bare_lab.agent('default', hosts='127.0.0.1:1', conf={
        'worker_source': 'static', 'static_worker': 1}).up(20, '--first-use')


def measure(lab, agent, point, calls, *flags):
    told = App(lab, 'idlate', point, agent.socket, agent.process.pid,
               TIMEOUT_MS, calls, *flags).finish()
    print(point, *flags, told)
    return told


@pytest.mark.real_time
@pytest.mark.parametrize('flags', [[], ['signals']])
def test_deadlines_hold_wherever_the_agent_stops(bare_lab, agent, flags):
    """Before it accepts, before it replies, at random moments under load: the
    half of all calls are within 10 ms of their deadline, more than a sleep."""
    for point in ('accept', 'request', 'random'):
        told = measure(bare_lab, agent, point, CALLS, *flags)
        late, control = told['late'], told['control']
        assert told['calls'] == CALLS
        assert late['p50'] <= 10000 + 2 * control['max'], (point, told)
        assert late['max'] <= 2e6 + 5 * control['max'], (point, told)
        if point != 'random':  # there the agent may still answer
            assert late['min'] >= 0, (point, told)
        assert not flags or told['ticks'] > 0


@pytest.mark.real_time
@pytest.mark.parametrize('flags', [[], ['signals']])
def test_try_next_never_waits_for_a_stopped_agent(bare_lab, agent, flags):
    """200 us for a reply under way, give or take what a sleep of that length
    is late by; the timeout of a minute is never waited for."""
    told = measure(bare_lab, agent, 'try', 200, *flags)
    call, control = told['late'], told['control']
    assert call['p50'] <= 200 + 2 * control['max'], told
    assert call['max'] <= 2e6 + 5 * control['max'], told
