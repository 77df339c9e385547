# SPDX-License-Identifier: Apache-2.0
"""What each kind of fault does, and how it ends.

Each is a generator: up to its `yield` it strikes, after it it is over.  It
yields what there is to say in the timeline.
"""
import os
import resource
import signal
import threading
import time

from firnlab import wait
from firnlab.build import firn
from firnlab.jute import NOT_EMPTY, NoNode, ZooError
from world import spawn

SHORT_FILE = 2048  # half of a state file


# ---- an agent's process ------------------------------------------------------

def kill(world, seat, fault):
    seat.kill()
    yield 'kill -9'
    seat.start()


def kill_forget(world, seat, fault):
    seat.kill()
    try:
        seat.agent.forget()
    except OSError:
        pass  # its disk is full: it has lost the file all the same
    yield 'kill -9, and its state file is lost'
    os.makedirs(seat.agent.state_dir, 0o700, exist_ok=True)
    seat.start()


def restart(world, seat, fault):
    status = seat.end()
    if status != 0:
        world.wrong.append('%s: a clean stop exits with %d' % (
            seat.name, status))
    yield 'clean stop'
    seat.start()


def freeze(world, seat, fault):
    seat.agent.freeze()
    yield 'SIGSTOP'
    seat.agent.thaw()


def hup(world, seat, fault):
    path = seat.agent.base + '.json'
    with open(path) as f:
        good = f.read()
    if fault.what == 'removed':
        os.unlink(path)
    elif fault.what == 'broken':
        with open(path, 'w') as f:
            f.write(good[:len(good) // 2])
    seat.agent.process.signal(signal.SIGHUP)
    yield 'SIGHUP, its configuration is ' + fault.what
    with open(path, 'w') as f:
        f.write(good)
    seat.agent.process.signal(signal.SIGHUP)


def socket_removed(world, seat, fault):
    try:
        os.unlink(seat.agent.socket)
    except FileNotFoundError:
        pass
    yield 'its socket is removed'


def descriptors(world, seat, fault):
    pid = seat.agent.process.pid
    seat.excuse('descriptors')
    used = len(os.listdir('/proc/%d/fd' % pid))
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, hard))
    for door in seat.doors:
        door.reset()  # so that it would need one
    yield 'no more than its %d descriptors' % used
    if seat.agent.process.pid == pid and seat.agent.process.running():
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
    seat.sorry('descriptors')


# ---- its way to ZooKeeper ----------------------------------------------------

def cut(world, seat, fault, up=True, down=True):
    for door in seat.doors:
        door.hole(up, down)
    yield 'cut off from ZooKeeper' + (
        '' if up and down else ', what it sends' if up else ', what it hears')
    seat.heal()


def cut_up(world, seat, fault):
    return cut(world, seat, fault, down=False)


def cut_down(world, seat, fault):
    return cut(world, seat, fault, up=False)


def cut_one_server(world, seat, fault):
    seat.doors[fault.what].hole()
    yield 'cut off from server %d' % (fault.what + 1)
    seat.heal()


def refuse(world, seat, fault):
    for door in seat.doors:
        door.refuse()
    yield 'ZooKeeper refuses its connections'
    seat.heal()


def reset(world, seat, fault):
    for door in seat.doors:
        door.reset()
    yield 'its connections are reset'


def slow(world, seat, fault):
    for door in seat.doors:
        door.slow(fault.what)
    yield 'each frame %.0f ms late' % (1000 * fault.what)
    seat.heal()


def swallow(world, seat, fault):
    operation, path, count, then, what = fault.what
    rules = [door.swallow(operation, path, count, then, what)
             for door in seat.doors]
    yield '%d %s of %s %s swallowed, then %s' % (
        count, 'replies' if what == 'reply' else 'requests', operation, path,
        then)
    world.counts['swallowed'] += sum(len(rule.seen) for rule in rules)
    seat.heal()


# ---- its disk and its clock --------------------------------------------------

def disk_full(world, seat, fault):
    if not world.mounts:  # no disk of its own: as good as it gets
        yield from disk_limit(world, seat, fault)
        return
    seat.excuse('disk')
    ballast = seat.disk + '/ballast'
    try:
        with open(ballast, 'wb', buffering=0) as f:
            while f.write(bytes(4096)):
                pass
    except OSError:
        pass  # full
    try:
        os.unlink(seat.agent.state_dir + '/state')
    except FileNotFoundError:
        pass
    yield 'the disk of its state file is full, and the file gone'
    os.unlink(ballast)
    seat.sorry('disk')


def disk_limit(world, seat, fault):
    pid = seat.agent.process.pid
    seat.excuse('disk')
    try:
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (SHORT_FILE, hard))
    except ProcessLookupError:
        hard = resource.RLIM_INFINITY
    yield 'only half a state file can be written'
    if seat.agent.process.pid == pid and seat.agent.process.running():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
    seat.sorry('disk')


def clock_step(world, seat, fault):
    seat.wrist.step(fault.what)
    yield 'its clock is %+.3f s off' % fault.what
    seat.wrist.step(0)


def clock_rate(world, seat, fault):
    slewing = threading.Thread(target=seat.wrist.slew, args=(
        fault.what, fault.until - fault.at), daemon=True)
    slewing.start()
    yield 'its clock runs at %.4f' % fault.what
    slewing.join()
    seat.wrist.step(0)


def wild_clock(world, seat, fault):
    """Not noted down: nobody may issue IDs of such a time."""
    seat.agent.clock.set(fault.what)
    yield 'its clock alone is %+.0f s off' % fault.what
    seat.wrist.step(0)


# ---- applications ------------------------------------------------------------

def client_crash(world, seat, fault):
    seat.crowd.kill()
    yield 'an application is killed, with its children'
    seat.crowd.start()


def client_freeze(world, seat, fault):
    load = seat.loads[fault.what]
    load.process.stop()
    yield 'an application stands still'
    load.process.cont()


# ---- servers -----------------------------------------------------------------

def start_servers(servers):
    for server in servers:
        spawn(server.launch)
    for server in servers:
        server.ready(120)


def leader_kill(world, seat, fault):
    leader = world.ensemble.leader(60)
    leader.kill()
    yield 'server %d, the leader, is killed' % leader.number
    start_servers([leader])


def leader_freeze(world, seat, fault):
    leader = world.ensemble.leader(60)
    leader.freeze()
    yield 'server %d, the leader, stands still' % leader.number
    leader.thaw()


def rolling_restart(world, seat, fault):
    yield 'all servers, one after another'
    for server in world.ensemble.servers:
        server.process.signal(signal.SIGTERM)
        server.process.wait(30)
        start_servers([server])


def outage(world, seat, fault):
    for server in world.ensemble.servers:
        server.kill()
    yield 'all servers are killed'
    start_servers(world.ensemble.servers)


def server_clock(world, server, fault):
    server.clock.set(fault.what)
    yield 'its clock is %+.0f s off' % fault.what
    server.clock.set(0)


# ---- the realm, as an operator would, or should not --------------------------

def patiently(what, seconds=60):
    """Again until ZooKeeper has done it."""
    def tried():
        try:
            what()
            return True
        except (OSError, ZooError, AssertionError):
            time.sleep(0.2)
            return False
    wait.until(tried, seconds, 'an operator is served by ZooKeeper')


def marks_deleted(world, seat, fault):
    """Of worker IDs in use, if there are any."""
    gone = []

    def delete():
        path = world.realm.marks_path
        with world.ensemble.client() as zoo:
            names = sorted(zoo.list(path)[0])
            for name in names[-fault.what:]:
                try:
                    zoo.delete('%s/%s' % (path, name))
                    gone.append(name)
                except NoNode:
                    pass
    patiently(delete)
    yield 'somebody deletes marks %s' % ', '.join(gone)


def tree_gone(zoo, path):
    while True:
        try:
            zoo.delete_tree(path)
            return
        except NoNode:
            if zoo.exists(path) is None:
                return
        except ZooError as e:  # somebody was quicker and created a node
            if e.code != NOT_EMPTY:
                raise


def after_loss(world, seat, fault):
    def delete():
        with world.ensemble.client() as zoo:
            tree_gone(zoo, world.realm.path)
    patiently(delete)
    yield 'the realm is lost, and restored with --after-loss'
    patiently(lambda: firn('realm', 'create', '--from', world.backup,
                           '--after-loss', '--zk', world.ensemble.hosts,
                           '--realm', world.realm.name))
    # the next loss must not bring back a generation that was there before
    patiently(world.back_up)


def struck(kind):
    """The generator of a kind."""
    return globals()[kind.replace('-', '_')]
