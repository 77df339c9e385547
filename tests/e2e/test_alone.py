# SPDX-License-Identifier: Apache-2.0
"""Without ZooKeeper: static and ordinal worker IDs.

The state file is the only mark: without one that counts nothing is issued; a
number and a directory serve nothing twice, whatever the clock and the kills.
"""
import os
import shutil
import tempfile
import time
import uuid

import pytest

from firnlab import wait
from firnlab.build import AGAIN, CONFIG, clean_env, firn, program
from firnlab.load import check
from firnlab.process import Process
from firnlab.statefile import StateFile

NOWHERE = '127.0.0.1:1'  # never asked
HOUR = 3600


def static(lab, worker=0, **conf):
    return lab.agent('default', hosts=NOWHERE, conf=dict(
        conf, worker_source='static', static_worker=worker))


def said(agent, *words):
    return [line for line in agent.log().splitlines()
            if all(w in line for w in words)]


def lost(agent, *words):
    doc = agent.refuses('state_lost', 10)
    for word in words + ('--first-use',):
        assert word in doc['words'], doc
    return doc


def load_of(lab, agent, more=50, **options):
    options.setdefault('timeout', 5000)
    return lab.load(agent, rate=1000, **options).takes(more)


# ---- the laptop --------------------------------------------------------------

@pytest.fixture
def home():
    """A directory of a plain user's, and what runs a program as him."""
    path = tempfile.mkdtemp(prefix='firn-home-', dir='/tmp')
    become = []
    if os.getuid() == 0:
        os.chown(path, 65534, 65534)
        become = ['setpriv', '--reuid=65534', '--regid=65534',
                  '--clear-groups']
    yield path, become
    shutil.rmtree(path)


@pytest.mark.short
def test_the_laptop_line_as_a_plain_user(home):
    """README: a number, a socket and a directory in the working directory."""
    path, become = home
    line = ['--static-worker', '0', '--socket', './firn.sock', '--state-dir',
            '.firn']
    sock = path + '/firn.sock'
    seen = []
    for flags in (['--first-use'], []):
        agent = Process(become + [program('firnd')] + line + flags,
                        path + '/log', env=clean_env(), cwd=path)
        firn('wait', '--socket', sock, '--timeout', 10000)
        ids = firn('next', '-n', 5, '--socket', sock).out.split()
        seen += [int(i) for i in ids]
        told = firn('status', '--socket', sock).out
        assert 'without ZooKeeper' in told, told
        assert 'ZooKeeper away' not in told and 'window' not in told, told
        doc = firn('status', '--json', '--socket', sock).json
        assert (doc['state'], doc['source'], doc['worker']) == (
            'serving', 'static', 0), doc
        agent.signal(15)
        assert agent.wait(10) == 0, agent.text()
    assert len(seen) == 10 and seen == sorted(set(seen))
    assert oct(os.stat(path + '/.firn').st_mode & 0o777) == '0o700'


# ---- no file -----------------------------------------------------------------

def test_without_a_file_that_counts(bare_lab):
    """None, garbled, another number's, copied: state_lost with the way out;
    --first-use opens it, and not below a mark that can be read."""
    agent = static(bare_lab, 3)
    agent.start()
    lost(agent, 'no state file', 'worker ID 3')
    assert 'state_lost' in firn('next', '--socket', agent.socket,
                                status=AGAIN).err
    assert len(said(agent, 'warn:', 'state_lost')) == 1
    agent.end()
    assert not os.path.exists(StateFile(agent.state_dir).path)
    loads = [load_of(bare_lab, agent.up(10, '--first-use'))]
    agent.end()
    loads[0].stop()
    state = StateFile(agent.state_dir)
    good = state.bytes()
    state.write(good[:100])
    lost(agent.start(), 'makes no sense')
    agent.end()
    assert len(state.bytes()) == 100  # for whoever looks into it
    state.write(good)
    agent.conf['static_worker'] = 4
    lost(agent.start(), 'another worker ID')
    agent.end()
    agent.conf['static_worker'] = 3
    os.unlink(agent.state_dir + '/lock')  # what a copy looks like
    lost(agent.start(), 'copy')
    agent.end()
    # the mark of the copy is a floor: here one that is 2 s ahead
    ahead = int(state.read()['local_mark_tick']) + 2000
    state.rewrite(local_mark_tick=str(ahead))
    agent.start('--first-use')
    agent.serving(10)
    loads.append(load_of(bare_lab, agent))
    loads[1].stop()
    check([loads[1]], not_before=str(1735689600000 + ahead))
    check(loads, workers=3)


def test_another_boot_or_machine_is_a_floor(bare_lab):
    """After a reboot, or in a pod that moved with its volume, the mark holds,
    whatever the clock says."""
    hosts = [alone_host(bare_lab, n) for n in (1, 2)]
    loads = []
    for host in hosts:
        loads.append(load_of(bare_lab, host.up(10, '--first-use')))
    for host, change in zip(hosts, ({'boot_id': str(uuid.uuid4())},
                                    {'machine_id': 'f' * 32})):
        host.kill()
        StateFile(host.state_dir).rewrite(**change)
        host.clock.step(-2)  # the new one's clock is slow
        host.start()
    for host in hosts:
        loads.append(load_of(bare_lab, host.serving(15)))
    for load in loads:
        load.stop()
    check(loads, workers='1-2')


# ---- clocks ------------------------------------------------------------------

def alone_host(lab, worker, **conf):
    return lab.host('default', hosts=NOWHERE, conf=dict(
        conf, worker_source='static', static_worker=worker))


def test_killed_in_a_loop_with_the_clock_stepped_back_between(bare_lab):
    """static under kill -9: none twice; a step back made meanwhile is seen;
    calls with a deadline of 5 s never fail until the step is an hour."""
    policies = ('wait', 'fail', 'logical')
    hosts = [alone_host(bare_lab, n, on_step=p).up(10, '--first-use')
             for n, p in enumerate(policies)]
    loads = [load_of(bare_lab, h) for h in hosts]
    loads += [load_of(bare_lab, h, mode='many', batch=300) for h in hosts]
    for i in range(4):  # each waits for up to 4 s written ahead
        for host in hosts:
            host.kill()
        for host in hosts:
            host.clock.step(-0.2 if i % 2 else -0.02)
            host.start()
        for host in hosts:
            host.serving()
        for load in loads:
            load.takes(20)
    for load in loads:
        assert load.failed() == 0, load.events()
    for host in hosts:
        host.kill()
        host.clock.step(-HOUR)
        host.start()
    for host in hosts:
        host.refuses('clock_back', 10)
    for load in loads:
        load.stop()
    for host in hosts:
        host.clock.step(HOUR)
        host.serving(10)
    loads += [load_of(bare_lab, h) for h in hosts]
    for load in loads[6:]:
        load.stop()
    check(loads, workers='0-2')


def test_steps_while_it_runs(bare_lab):
    """Forward it follows, with an alert, since nobody could say otherwise;
    back as with ZooKeeper."""
    policies = ({'on_step': 'wait'}, {'on_step': 'fail'},
                {'on_step': 'logical', 'logical_lead_ms': HOUR * 1000})
    hosts = [alone_host(bare_lab, n, **p).up(10, '--first-use')
             for n, p in enumerate(policies)]
    loads = [load_of(bare_lab, h, timeout=1000) for h in hosts]
    for host in hosts:
        host.clock.step(3)
    for host, load in zip(hosts, loads):
        load.takes(2000)
        assert load.failed() == 0
        assert said(host, 'alert clock_step', 'followed')
    stepped = time.monotonic()
    for host in hosts:
        host.clock.step(-2)
    for host in hosts[:2]:
        assert 'service returns at' in host.refuses('clock_back', 3)['words']
    loads[2].takes(500)  # goes on counting
    assert loads[2].failed() == 0
    for load in loads[:2]:
        load.takes(1, 10)
        took = time.monotonic() - stepped
        print('returns %.2f s after a step back by 2 s' % took)
        assert 1.9 < took < 10
    for load in loads:
        load.stop()
    check(loads, workers='0-2')


# ---- copies ------------------------------------------------------------------

def test_one_directory_copied_to_three(bare_lab):
    """Three containers from one image with a state in it, and one more agent
    on the original: only that one uses it."""
    first = static(bare_lab, 9)
    loads = [load_of(bare_lab, first.up(10, '--first-use'))]
    first.end()
    loads[0].stop()
    copies = [static(bare_lab, 9) for _ in range(3)]
    for copy in copies:
        shutil.rmtree(copy.state_dir)
        shutil.copytree(first.state_dir, copy.state_dir)
    first.start()
    for copy in copies:
        copy.start()
    for copy in copies:
        lost(copy, 'a copy')
    loads.append(load_of(bare_lab, first.serving(10)))
    # and on the very same directory there is room for one
    second = static(bare_lab, 9)
    second.state_dir = first.state_dir
    second.may_fail = True
    assert second.start().process.wait(10) == 1
    assert said(second, 'another firnd (pid %d)' % first.process.pid)
    for copy in copies:
        assert copy.status()['reason'] == 'state_lost'
        assert copy.status()['issued'] == '0'
    loads[1].stop()
    check(loads, workers=9)


# ---- the disk ----------------------------------------------------------------

def test_a_disk_that_cannot_be_written(bare_lab):
    """state_failed once the mark written ahead is used up; back by itself."""
    agent = static(bare_lab, 1).up(10, '--first-use')
    load = load_of(bare_lab, agent, timeout=100)
    path = StateFile(agent.state_dir).path
    os.unlink(path)
    os.makedirs(path + '/in-the-way')
    start = time.monotonic()
    wait.until(load.failed, 10, agent.tail)
    print('refuses %.1f s after the disk failed' % (time.monotonic() - start))
    assert 'state_failed' in agent.refuses('state_failed', 5)['words']
    assert len(said(agent, 'warn: state', 'cannot replace it')) == 1
    shutil.rmtree(path)
    load.takes(100, 10)
    load.stop()
    agent.end()
    loads = [load, load_of(bare_lab, agent.up())]
    loads[1].stop()
    check(loads, workers=1)


@pytest.mark.short
def test_with_zookeeper_its_file_is_no_window(bare_lab):
    """The window in it ends with the layout: an agent that is to claim its
    worker ID does not go on in it, however long ZooKeeper is away."""
    agent = static(bare_lab, 7).up(10, '--first-use')
    for end in (agent.end, agent.kill):
        end()
        agent.conf.pop('worker_source', None)
        agent.conf.pop('static_worker', None)
        agent.start()
        agent.refuses('no_realm', 10)
        firn('next', '--socket', agent.socket, '--timeout', 100, status=AGAIN)


# ---- ordinals, layouts -------------------------------------------------------

@pytest.mark.short
def test_ordinals(bare_lab):
    """The number at the end of a name or of a variable's value; realms of
    one name, layout and epoch have one uuid, others another."""
    def ordinal(name, env=None, **conf):
        agent = bare_lab.agent('pods', hosts=NOWHERE, conf=dict(
            conf, worker_source='ordinal', ordinal=name), env=env)
        return agent.start('--first-use')

    named = ordinal('ids-7')
    variable = ordinal('$POD', {'POD': '12'})
    layout = {'layout': '40/8/8', 'epoch': '2020-01-01T00:00:00Z'}
    other = ordinal('$POD', {'POD': 'ids-255'}, **layout)
    agents = (named, variable, other)
    for agent, worker in zip(agents, (7, 12, 255)):
        doc = agent.serving(10).status()
        assert (doc['source'], doc['worker']) == ('ordinal', worker), doc
    uuids = [a.status()['uuid'] for a in agents]
    assert uuids[0] == uuids[1] != uuids[2]
    loads = [load_of(bare_lab, a) for a in agents]
    for load in loads:
        load.stop()
    check(loads[:2], workers='7,12')
    check(loads[2:], workers='255', layout='40/8/8', epoch='1577836800000')
    for name, env, words in (('host', None, 'does not end in a number'),
                             ('$POD', {'POD': ''}, 'is empty'),
                             ('$POD', None, 'is not set'),
                             ('ids-1024', None, 'worker bits')):
        wrong = ordinal(name, env)
        wrong.may_fail = True
        assert wrong.process.wait(10) == CONFIG, wrong.tail()
        assert said(wrong, 'ordinal', words), wrong.tail()
