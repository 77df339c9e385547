# SPDX-License-Identifier: Apache-2.0
"""How late libfirn's calls are when the agent stops (SIGSTOP) under them, and
what of an agent's refusals they wait out until then.

Every bound is relative to a bare sleep of the same length in the same run: a
machine that is busy delays both.  (Stopped within a reply: test_stub.)
"""
import os
import shutil
import subprocess
import tempfile
import time

import pytest

from firnlab import wait
from firnlab.agent import Agent
from firnlab.app import App
from firnlab.build import AGAIN, NOT_ALLOWED, clean_env, firn, program
from firnlab.process import SETPRIV

TIMEOUT_MS = 20
CALLS = 20


def static(lab, **conf):
    return lab.agent('default', hosts='127.0.0.1:1', conf=dict(
        conf, worker_source='static', static_worker=1))


@pytest.fixture
def agent(bare_lab):
    return static(bare_lab).up(20, '--first-use')


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


# ---- refusals ----------------------------------------------------------------

def refused(agent, n, words):
    """Until a call with a short deadline ends in a refusal with these words;
    on a busy machine some answers come too late."""
    def look():
        result = firn('next', '-n', n, '--socket', agent.socket, '--timeout',
                      100, status=None)
        return (result.status == AGAIN and 'too_many' in result.err
                and words in result.err)
    wait.until(look, 60, 'refused: ' + words)


def test_over_its_rate_a_call_waits_within_its_deadline(bare_lab):
    """too_many as a reply: waited out where it fits, else told in words."""
    agent = static(bare_lab, max_ids_per_second=2).up(20, '--first-use')
    at = ('next', '--socket', agent.socket)
    before = time.monotonic()
    ids = firn(*at, '-n', 6, '--timeout', 60000).out.split()
    assert len(set(ids)) == 6
    # three seconds' share: the first may have been there, not the others
    assert time.monotonic() - before >= 1
    refused(agent, 4, 'max_ids_per_second 2')


def test_more_clients_than_allowed(bare_lab):
    """too_many instead of a connection: a call waits for room, or says why
    there is none."""
    agent = static(bare_lab, max_clients=1)
    agent.up(20, '--first-use')
    holder = App(bare_lab, 'idloop', 'epoll', agent.socket, 'PREFIX').takes(1)
    refused(agent, 1, 'max_clients is 1')
    waiting = bare_lab.load(agent, count=100, timeout=60000)
    wait.until(lambda: os.path.exists(waiting.prefix + '.progress'), 20,
               'the load runs')
    assert waiting.ids() == 0
    holder.process.signal(15)
    holder.finish()
    assert waiting.finish()['failed'] == 0


@pytest.mark.parametrize('by', ['mode', 'list'])
def test_who_is_not_allowed(home, bare_lab, by):
    """By the socket's mode, or by the agent's list: at once and for good, and
    the words name socket, group and user."""
    agent = Agent(home, by, '127.0.0.1:1', 'default', conf={
        'worker_source': 'static', 'static_worker': 1,
        'socket_mode': '0666' if by == 'list' else '0600',
        'allow_uids': '4000000'})
    bare_lab.agents.append(agent)
    agent.up(20, '--first-use')
    uid, become = os.getuid(), []
    if uid == 0:  # root is allowed everything: be someone else
        uid = 65534
        become = [SETPRIV, '--reuid=65534', '--regid=65534', '--clear-groups']
    else:  # and so is the agent's own user, but for the mode
        os.chmod(agent.socket, 0)
    command = shutil.copy(program('firn'), home)
    done = subprocess.run(
        become + [command, 'next', '--socket', agent.socket, '--timeout',
                  '60000'], env=clean_env(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, timeout=50)
    assert done.returncode == NOT_ALLOWED, done
    for words in (agent.socket, 'group ', 'this process has uid %d' % uid):
        assert words in done.stderr, done
    if by == 'list' and become:
        assert "not_allowed: uid 65534, gid 65534" in done.stderr, done


@pytest.fixture
def home():
    """A directory whose socket every user can see."""
    path = tempfile.mkdtemp(prefix='firn-home-', dir='/tmp')
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)
