# SPDX-License-Identifier: Apache-2.0
"""The state file beside ZooKeeper, and outages of all of ZooKeeper.

A restart goes on in the window of the process before, with ZooKeeper up or
away; a file that is not this host's of this boot never opens a window; nothing
is issued above the local mark on file, and no ID twice.
"""
import array
import os
import shutil
import time
import uuid

import pytest

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import AGAIN, firn
from firnlab.load import check, numbers
from firnlab.process import free_port
from firnlab.statefile import StateFile

SHIFT = 22  # worker and sequence bits of the layout `firn`


def nobody():
    """Where no ZooKeeper is."""
    return '127.0.0.1:%d' % free_port()


def waiting_until(t, seconds):
    wait.until(lambda: time.monotonic() >= t, seconds, 'time to pass', 0.1)


def state_of(agent):
    return StateFile(agent.state_dir)


def ticks(load):
    """Ticks of all IDs that a load has written down."""
    values = array.array('Q')
    for name in load.files():
        if name.endswith('.ids'):
            with open(name, 'rb') as f:
                data = f.read()
            values.frombytes(data[:len(data) // 8 * 8])
    assert values
    return [v >> SHIFT for v in values]


def said(agent, *words):
    return [line for line in agent.log().splitlines()
            if all(w in line for w in words)]


def warnings(agent, since):
    return [line for line in agent.log()[since:].splitlines()
            if ' warn: ' in line and 'zookeeper' not in line]


# ---- restarts ----------------------------------------------------------------

@pytest.mark.short
def test_restarts_with_zookeeper_up_and_away(lab):
    """kill -9 or a clean stop, and up again, ZooKeeper away or back: one
    worker ID, and a window that is gone on in."""
    realm = lab.realm()
    agent = lab.agent(realm, conf=QUICK).up().reserves(15000)
    worker, hosts = agent.worker(), agent.hosts
    loads = []

    def life(seconds=20):
        agent.serving(seconds)
        assert agent.worker() == worker
        loads.append(lab.load(agent, threads=2, rate=1000, timeout=200,
                              mode='many', batch=20).takes(500))

    life()
    agent.kill()
    mark = int(state_of(agent).read()['local_mark_tick'])
    loads[-1].stop()
    assert max(ticks(loads[-1])) <= mark
    agent.hosts = nobody()
    agent.start()  # away: resumes
    life(5)
    assert said(agent, 'state: goes on as worker ID %d' % worker)
    doc = agent.status()
    assert doc['state'] == 'isolated' and not doc['connected']
    assert 0 < doc['window_left_ms'] <= 20000
    told = firn('status', '--socket', agent.socket).out
    assert 'isolated, ' in told and ' s left' in told, told
    assert 'ZooKeeper away' in told
    agent.end()  # away: the window stays open, up to the last tick issued
    loads[-1].stop()
    left = state_of(agent).read()
    assert left['open'] is True
    # what was issued last may still lie in a cache
    assert 0 <= int(left['local_mark_tick']) - max(ticks(loads[-1])) < 1000
    assert min(ticks(loads[-1])) > mark
    agent.start()
    life(5)
    agent.kill()
    agent.hosts = hosts
    agent.start()  # up: takes its mark over under a new name
    life()
    agent.wait_status(lambda d: d['state'] == 'serving' and d['claim'], 20,
                      'a claim')
    agent.kill()
    agent.start()
    life()
    agent.reserves(15000)
    last = realm.marks()[worker]
    agent.end()  # up: file first, then the mark, lowered
    for load in loads[-3:]:
        load.stop()
    left = state_of(agent).read()
    assert left['open'] is False
    lowered = int(realm.marks()[worker]['ceiling_tick'])
    assert lowered < int(last['ceiling_tick'])
    assert lowered == int(left['ceiling_tick'])
    assert 0 <= lowered - max(ticks(loads[-1])) < 1000
    agent.hosts = nobody()
    agent.start()  # nothing is left to resume
    agent.wait_status(lambda d: d['reason'] == 'no_realm', 10, 'no realm')
    agent.kill()
    agent.hosts = hosts
    agent.start()
    life()
    agent.end()
    loads[-1].stop()
    check(loads, workers=worker)


def test_two_agents_on_one_state(lab):
    """The second says who has it and exits; the lock outlives a kill -9 only
    as long as the process."""
    realm = lab.realm()
    first = lab.agent(realm, conf=QUICK).up()
    second = lab.agent(realm, conf=QUICK)
    second.state_dir = first.state_dir
    second.may_fail = True
    assert second.start().process.wait(10) == 1
    assert said(second, first.state_dir, 'another firnd (pid %d)'
                % first.process.pid)
    first.kill()
    second.start().serving()


# ---- what must not be used ---------------------------------------------------

def another_machine(f):
    f.rewrite(machine_id='0' * 31 + '1')


def another_boot(f):
    f.rewrite(boot_id=str(uuid.uuid4()))


def truncated(f):
    f.write(f.bytes()[:1000])


def emptied(f):
    f.write(b'')


def torn(f):
    """The head of an older record, and the rest of the new one."""
    raw = bytearray(f.bytes())
    at = raw.index(b'"local_mark_tick":"') + 19
    raw[at:at + 3] = b'123'
    f.write(raw)


def zeros(f):
    f.write(bytes(4096))


def wrong_mode(f):
    os.chmod(f.path, 0o644)


def linked(f):
    os.rename(f.path, f.path + '.real')
    os.symlink(f.path + '.real', f.path)


def lock_replaced(f):
    os.unlink(os.path.dirname(f.path) + '/lock')


def wrong_owner(f):
    if os.getuid() == 0:
        os.chown(f.path, 65534, -1)
    else:
        wrong_mode(f)


SPOILT = {
    another_machine: 'written on another machine',
    another_boot: 'written before this boot',
    truncated: 'truncated: only 1000 of 4096',
    emptied: 'truncated: only 0 of 4096',
    torn: 'the checksum is wrong',
    zeros: 'torn',
    wrong_mode: 'mode 0644 instead of 0600',
    linked: 'a symbolic link',
    lock_replaced: 'written under another lock',
    wrong_owner: 'uid' if os.getuid() == 0 else 'mode',
}


def test_a_file_that_is_not_ones_own(lab):
    """Each kind: one line, no window; with ZooKeeper back it serves, and
    nothing twice.  A copy is none either, while the first one lives."""
    realm = lab.realm()
    agents = [lab.agent(realm, conf=QUICK).start() for _ in SPOILT]
    first = lab.agent(realm, conf=QUICK).up()
    hosts = first.hosts
    loads = [lab.load(a.serving(), rate=500, timeout=100).takes(20)
             for a in agents + [first]]
    copy = lab.agent(realm, hosts=nobody(), conf=QUICK)
    shutil.rmtree(copy.state_dir)
    shutil.copytree(first.state_dir, copy.state_dir)
    since = {copy: 0}
    for agent, spoil in zip(agents, SPOILT):
        agent.kill()
        spoil(state_of(agent))
        since[agent] = len(agent.log())
        agent.hosts = nobody()
    for agent in since:
        agent.start()
    for agent in since:
        agent.wait_status(lambda d: d['reason'] == 'no_realm', 10,
                          'no window')
        firn('next', '--socket', agent.socket, '--timeout', 100, status=AGAIN)
    for agent, words in zip(agents + [copy],
                            list(SPOILT.values()) + ['under another lock']):
        lines = warnings(agent, since[agent])
        lines = [line for line in lines if 'state' in line]
        assert len(lines) == 1 and words in lines[0], (words, lines)
    for agent in since:
        agent.kill()
        agent.hosts = hosts
        agent.start()
    for agent in since:
        agent.serving()
        loads.append(lab.load(agent, rate=500, timeout=1000).takes(20))
    assert copy.worker() != first.worker()
    for load in loads:
        load.stop()
    check(loads)


# ---- a file that cannot be written -------------------------------------------

def test_the_file_cannot_be_written(lab):
    """Removed under its hands: it goes on without one, said once.  Neither to
    be written nor removed: state_failed, and back once it can be."""
    realm = lab.realm()
    gone, stuck = [lab.agent(realm, conf=QUICK).up() for _ in range(2)]
    loads = [lab.load(a, rate=500, timeout=t).takes(20)
             for a, t in ((gone, 2000), (stuck, 100))]
    workers = [gone.worker()]
    shutil.rmtree(gone.state_dir)
    wait.until(lambda: said(gone, 'warn: state', 'goes on without a file'), 10,
               gone.tail)
    loads[0].takes(2000)
    assert loads[0].failed() == 0
    assert len(said(gone, 'warn: state')) == 1
    path = state_of(stuck).path
    os.unlink(path)
    os.makedirs(path + '/in-the-way')
    stuck.refuses('state_failed', 10)
    wait.until(loads[1].failed, 5, 'calls are refused')
    assert len(said(stuck, 'warn: state', 'refuses')) == 1
    shutil.rmtree(path)
    stuck.serving(5)
    loads[1].takes(50)
    assert len(said(stuck, 'state: can be written again')) == 1
    stuck.kill()
    assert state_of(stuck).read()['open'] is True
    gone.kill()
    os.makedirs(gone.state_dir, 0o700)
    gone.up()  # like a new host: the dead one's mark is ahead
    assert gone.worker() not in workers
    loads.append(lab.load(gone, rate=500).takes(20))
    for load in loads:
        load.stop()
    check(loads)


# ---- all of ZooKeeper gone ---------------------------------------------------

def test_the_whole_ensemble_gone(own_lab):
    """55 s: no failed call.  90 s: window_spent, and back by itself.  With a
    window of an hour it goes on, also over a kill -9 meanwhile.  (Times are
    the defaults, but for that hour.)"""
    ensemble = own_lab.own_ensemble(tick=2000)
    realm = own_lab.realm('--first', '--reserve-max', '3600000')
    hour = {'reserve_ms': 3600000}
    agents = [own_lab.agent(realm, conf=c).start()
              for c in ({}, hour, hour, {'reserve_ms': 120000})]
    for agent, ms in zip(agents, (50000, 3500000, 3500000, 100000)):
        agent.serving().reserves(ms)
    spent, steady, killed, ended = agents
    workers = [a.worker() for a in agents]
    loads = [own_lab.load(a, threads=2, rate=500, timeout=t).takes(100)
             for a, t in zip(agents, (2000, 2000, 5000, 5000))]
    for server in ensemble.servers:
        server.kill()
    gone, gone_ms = time.monotonic(), int(time.time() * 1000)
    for agent in agents:
        agent.wait_status(lambda d: d['state'] == 'isolated', 15, 'isolated')
    waiting_until(gone + 20, 30)
    killed.kill()
    killed.up(5)
    ended.end()
    ended.up(5)
    waiting_until(gone + 55, 60)
    for load in loads:
        load.takes(100)
        assert load.failed() == 0
    # 60 s from the last renewal, which was at most 3 s before
    wait.until(loads[0].failed, 10, 'the window ends')
    ended_ms = [e.ms for e in loads[0].events() if e.name != 'ok'][0]
    print('refused %d ms after the loss' % (ended_ms - gone_ms))
    assert 56000 < ended_ms - gone_ms < 65000
    assert 'window_spent' in spent.refuses('window_spent', 2)['words']
    waiting_until(gone + 90, 60)
    for load in loads[1:]:
        load.takes(100)
    for server in ensemble.servers:
        server.launch()
    back = time.monotonic()
    for server in ensemble.servers:
        server.ready(40)
    ready = time.monotonic()
    spent.serving(60)
    print('serves %.1f s after the start of the servers, %.1f s after they '
          'were ready' % (time.monotonic() - back, time.monotonic() - ready))
    loads[0].takes(100)
    for agent in agents:
        agent.wait_status(lambda d: d['state'] == 'serving', 60, 'serving')
    assert realm.settles(agents, 30) == workers
    for load in loads:
        load.stop()
    for load in loads[1:]:
        assert load.result['failed'] == 0, load.result
    check(loads, workers=numbers(workers))
