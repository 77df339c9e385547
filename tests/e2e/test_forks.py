# SPDX-License-Identifier: Apache-2.0
"""libfirn in applications that fork, spawn, exec, and are interrupted.

Each child starts while its parent has IDs in memory; the checker sees all
that parent and children took, and that each thread's IDs only go up.
"""
import signal

import pytest

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.app import App
from firnlab.load import check

KINDS = ('fork', '_Fork', 'clone', 'spawn', 'vfork', 'exec', 'nested',
         'threads')


def up(lab, **conf):
    return lab.agent(lab.realm(), conf=dict(QUICK, **conf)).up()


def issued(agent):
    return int(agent.status()['issued'])


@pytest.mark.short
def test_children_of_a_warm_parent(lab):
    """Each kind of child there is, ten of each, beside a parent that goes on:
    none twice, and no descriptor of the parent's is kept."""
    agent = up(lab)
    apps = []
    for kind in KINDS:
        apps.append(App(lab, 'idfork', kind, agent.socket, 'PREFIX', 10, 1000))
        apps[-1].finish()
        # the parent's file (and those of its threads), one for each child
        assert len(apps[-1].files()) == {
            'exec': 21, 'nested': 61, 'threads': 15}.get(kind, 11)
    assert check(apps)['ids'] == sum(app.ids() for app in apps) > 80000


@pytest.mark.short
def test_children_where_the_kernel_does_not_wipe(lab):
    """A seccomp filter refuses MADV_WIPEONFORK: nothing is kept in memory, so
    what the agent issues is what the processes took, to the last ID."""
    agent = up(lab, ttl_ms=60000)
    apps = []
    for kind in KINDS:
        if kind in ('spawn', 'exec'):
            continue  # the program they start is another one
        before = issued(agent)
        app = App(lab, 'idfork', kind, agent.socket, 'PREFIX', 6, 100,
                  'no-wipe')
        app.finish()
        apps.append(app)
        if kind != 'threads':  # a thread may leave what another asked for
            assert issued(agent) - before == app.ids(), kind
    check(apps)


def test_a_pre_fork_server_of_50_children(lab):
    agent = up(lab)
    app = App(lab, 'idfork', 'fork', agent.socket, 'PREFIX', 50, 4000)
    app.finish()
    assert len(app.files()) == 51
    assert check([app])['ids'] >= 50 * 4000


@pytest.mark.short
def test_signals_at_every_point(lab):
    """A timer of 1 kHz for each of four threads, while the agent is killed
    twice: no call fails, none of the IDs is there twice."""
    agent = up(lab)
    app = App(lab, 'idsignal', agent.socket, 'PREFIX', 0, 4)
    for _ in range(2):
        app.takes(10000)
        agent.kill()
        agent.up()
    app.takes(300000)
    app.process.signal(signal.SIGTERM)
    told = app.finish()
    print(told, app.process.text())
    assert told['ticks'] > 100
    check([app])


def test_no_id_is_lost_to_a_signal(lab):
    """Calls that ask for what they give out, interrupted: the agent's count
    is that of the IDs they returned."""
    agent = up(lab, ttl_ms=60000)
    before = issued(agent)
    app = App(lab, 'idsignal', agent.socket, 'PREFIX', 1000, 1, 'no-wipe')
    told = app.finish()
    print(told, app.process.text())
    assert told['ticks'] > 100
    assert issued(agent) - before == app.ids() > 0
    check([app])


def waits(app):
    """Until it takes no more."""
    seen = [-1]

    def stands():
        seen.append(app.ids())
        return seen[-1] == seen[-2]
    wait.until(stands, 60, 'the loop waits')


@pytest.mark.short
@pytest.mark.parametrize('loop', ['epoll', 'libevent'])
def test_event_loop(lab, loop):
    """firn_try_next() and firn_poll_fd() alone take 10,000 IDs, over pauses
    of the agent and a restart; no call is as long as its timeout of 60 s."""
    agent = up(lab)
    app = App(lab, 'idloop', loop, agent.socket, 'PREFIX').takes(2000)
    for _ in range(3):
        agent.freeze()
        waits(app)
        agent.thaw()
        app.takes(2000)
    agent.kill()
    agent.up()
    app.takes(10000)
    app.process.signal(signal.SIGTERM)
    told = app.finish()
    print(told)
    assert told['taken'] == app.ids() >= 18000
    assert told['waits'] > 0 and told['away'] > 0
    assert told['longest_ms'] < 30000
    check([app])
