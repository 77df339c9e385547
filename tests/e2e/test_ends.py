# SPDX-License-Identifier: Apache-2.0
"""The ends of what a machine has: descriptors, memory, threads, disk, and
somebody who reads the log.

The agent goes on or refuses, with a line; it never dies half-way, never waits
for its log, and no ID comes twice whatever became of it.
"""
import errno
import fcntl
import mmap
import os
import pty
import resource
import signal
import socket
import struct
import subprocess

import pytest

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import SOURCE, firn
from firnlab.load import check

NOWHERE = '127.0.0.1:1'
EVER = 1 << 40


def said(agent, *words):
    return [line for line in agent.log().splitlines()
            if all(w in line for w in words)]


def static(lab, worker, **options):
    return lab.agent('default', hosts=NOWHERE, conf={
        'worker_source': 'static', 'static_worker': worker}, **options)


# ---- a shortage, preloaded ---------------------------------------------------

class Page:
    """shortage.c's page: numbers under the names that it has there."""

    names = ('good', 'bad', 'failed', 'threads', 'no_threads', 'disk')

    def __init__(self, path, shim):
        with open(path, 'wb') as f:
            f.write(bytes(mmap.PAGESIZE))
        with open(path, 'r+b') as f:
            self.map = mmap.mmap(f.fileno(), mmap.PAGESIZE)
        self.env = {'LD_PRELOAD': shim, 'FIRN_SHORTAGE': path}

    def __getitem__(self, name):
        return struct.unpack_from('<q', self.map,
                                  8 * self.names.index(name))[0]

    def __setitem__(self, name, value):
        struct.pack_into('<q', self.map, 8 * self.names.index(name), value)

    def starve(self, caller, good, bad=1):
        """After so many allocations by this part so many fail."""
        self['bad'] = self['failed'] = 0
        struct.pack_into('<64s', self.map, 8 * len(self.names),
                         caller.encode())
        self['good'] = good
        self['bad'] = bad


@pytest.fixture(scope='module')
def shim(tmp_path_factory):
    path = str(tmp_path_factory.mktemp('shortage') / 'shortage.so')
    subprocess.run([os.environ.get('CC', 'cc').split()[0], '-D_GNU_SOURCE',
                    '-shared', '-fPIC', '-o', path,
                    SOURCE + '/tests/e2e/shortage.c', '-ldl'], check=True)
    return path


@pytest.fixture
def page(bare_lab, shim):
    return Page(bare_lab.dir + '/page', shim)


# ---- standard error ----------------------------------------------------------

@pytest.mark.short
def test_standard_descriptors_closed_and_no_directory(lab):
    """Nothing it opens becomes its standard error; it needs no directory."""
    realm = lab.realm()
    proxy = lab.proxy()
    gone = lab.dir + '/gone'
    os.mkdir(gone)
    agent = lab.agent(realm, hosts=proxy.hosts, conf=QUICK)
    agent.launcher = ['sh', '-c', 'cd "$0" && rmdir "$0" && exec "$@" <&- >&- 2>&-',
                 gone]
    agent.up()
    assert not os.path.exists(gone)
    for fd in range(3):
        assert os.readlink('/proc/%d/fd/%d' % (agent.process.pid, fd)) == (
            '/dev/null')
    load = lab.load(agent, rate=500, timeout=5000).takes(50)
    proxy.reset()  # lines of the agent's and of ZooKeeper's client
    agent.process.signal(signal.SIGHUP)
    agent.wait_status(lambda d: d['connected'], 20, 'connected again')
    load.takes(50)
    assert load.stop()['failed'] == 0
    check([load])


class Reader:
    """Somebody at the other end of standard error who does not read."""

    def __init__(self, fd):
        self.fd = fd
        self.seen = b''
        os.set_blocking(fd, False)

    def reads(self):
        try:
            self.seen += os.read(self.fd, 65536)
        except BlockingIOError:
            pass
        return self.seen.decode(errors='replace')


def onto_pipe(lab, agent):
    """A pipe that is full from the start."""
    path = lab.dir + '/fifo'
    os.mkfifo(path)
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 4096)
    os.write(fd, b'x' * 4095 + b'\n')
    agent.launcher = ['sh', '-c', 'exec "$@" 2>"$0"', path]
    return Reader(fd), lambda: None


def onto_terminal(lab, agent):
    """A terminal stopped with ^S."""
    master, slave = pty.openpty()
    os.write(master, b'\x13')
    agent.launcher = ['sh', '-c', 'exec "$@" 2>"$0"', os.ttyname(slave)]
    return Reader(master), lambda: os.write(master, b'\x11')


def onto_socket(lab, agent):
    """A socket, as the journal's is, that is full from the start."""
    ours, its = socket.socketpair()
    try:
        while True:
            its.send(b'x' * 99 + b'\n', socket.MSG_DONTWAIT)
    except BlockingIOError:
        pass
    fd = its.detach()
    agent.launcher = ['bash', '-c', 'exec "$@" 2>&"$0"', str(fd)]
    agent.pass_fds = (fd,)
    return Reader(ours.detach()), lambda: None


def onto_full_disk(lab, agent):
    agent.launcher = ['sh', '-c', 'exec "$@" 2>/dev/full', 'sh']
    return None, None


def test_nobody_reads_the_log(lab):
    """It starts, serves and reconnects without one line getting through; then
    one tells how many were lost.  Flags of what it shares stay."""
    realm = lab.realm()
    proxy = lab.proxy()
    ways = (onto_pipe, onto_terminal, onto_socket, onto_full_disk)
    agents = [lab.agent(realm, hosts=proxy.hosts, conf=QUICK) for _ in ways]
    ends = [way(lab, agent) for way, agent in zip(ways, agents)]
    for agent in agents:
        agent.start()
    loads = [lab.load(a.serving(), rate=500, timeout=5000).takes(50)
             for a in agents]
    proxy.reset()
    for agent in agents:
        agent.wait_status(lambda d: d['connected'], 20, 'connected again')
        for _ in range(20):
            agent.process.signal(signal.SIGHUP)  # a line each
    for agent, load in zip(agents, loads):
        load.takes(50)
        with open('/proc/%d/fdinfo/2' % agent.process.pid) as f:
            flags = int(f.read().split('flags:')[1].split()[0], 8)
        assert not flags & os.O_NONBLOCK
    for reader, let_go in ends:
        if reader is not None:
            let_go()
            wait.until(lambda: 'log lines lost: ' in reader.reads(), 20,
                       lambda: reader.seen[-2000:])
            os.close(reader.fd)
    for load in loads:
        assert load.stop()['failed'] == 0, load.events()
    check(loads)


# ---- memory ------------------------------------------------------------------

def test_each_allocation_fails_once(lab, page):
    """Of our own and of libevent's: that one client is turned away, or that
    one round goes by.  Then all of them for a while."""
    realm = lab.realm()
    proxy = lab.proxy()
    conf = dict(QUICK, renew_ms=400, op_deadline_ms=300)
    agent = lab.agent(realm, hosts=proxy.hosts, conf=conf, env=page.env).up()
    load = lab.load(agent, threads=2, rate=500, timeout=5000).takes(50)
    for caller, most in (('firnd', 3), ('libevent', 2)):
        for good in range(most):
            page.starve(caller, good)
            firn('status', '--socket', agent.socket, status=None)
            wait.until(lambda: page['failed'], 20, 'an allocation')
            page['bad'] = 0
            agent.serving()
    assert said(agent, 'no memory for a connection')
    for caller in ('firnd', 'libevent'):
        page.starve(caller, 0, EVER)
        proxy.reset()
        firn('status', '--socket', agent.socket, status=None)
        wait.until(lambda: page['failed'], 20, 'allocations')
        load.takes(200)
        page['bad'] = 0
        agent.serving()
        agent.wait_status(lambda d: d['connected'], 30, 'connected again')
    assert load.failed() == 0, load.events()
    load.stop()
    check([load])


def test_zookeepers_client_without_memory(lab, page):
    """Where it cannot bear that, the agent is dead at once: like kill -9."""
    realm = lab.realm()
    proxy = lab.proxy()
    conf = dict(QUICK, renew_ms=400, op_deadline_ms=300)
    agent = lab.agent(realm, hosts=proxy.hosts, conf=conf, env=page.env)
    agent.up()
    load = lab.load(agent, threads=2, rate=500, timeout=5000).takes(50)
    ends = []

    def goes_on(goal):
        if not agent.process.running():
            ends.append(agent.process.status())
            agent.up()
        return load.ids() >= goal

    rounds = (0, 1, 3, 7, 12)
    for good in rounds:
        page.starve('libzookeeper', good)
        proxy.reset()
        wait.until(lambda: page['failed'], 30, 'an allocation')
        page['bad'] = 0
        goal = load.ids() + 200
        wait.until(lambda: goes_on(goal), 60, agent.tail)
    print('of %d rounds these ended the process: %s' % (len(rounds), ends))
    assert set(ends) <= {-signal.SIGSEGV, -signal.SIGABRT}
    assert load.stop()['failed'] == 0, load.events()
    check([load])
    agent.end()
    os.truncate(agent.process.log, 0)  # its assertions are its own


def test_start_without_memory(bare_lab, page):
    """One line and 1, which is worth another try; or it serves.  A mark that
    cannot be read for want of memory is not passed over."""
    agent = static(bare_lab, 1, env=page.env)
    agent.may_fail = True
    agent.up(20, '--first-use')
    load = bare_lab.load(agent, rate=500, timeout=5000).takes(50)
    load.stop()
    agent.kill()
    ends = []
    for caller, goods in (('firnd', [0, 3, 6, 9, 12, 15, 1000]),
                          ('libevent', [0, 1, 4, 8, 13, 20, 1000]),
                          ('libcjson', [0, 9, 18, 27])):
        for good in goods:
            since = len(agent.log())
            page.starve(caller, good)
            agent.start('--first-use')
            wait.until(lambda: not agent.process.running() or
                       agent.status(), 20, agent.tail)
            status = agent.process.status()
            ends.append(status)
            if status is None:
                assert caller != 'libcjson', 'the mark was passed over'
                page['bad'] = 0
                agent.kill()
                continue
            lines = [line for line in agent.log()[since:].splitlines()
                     if line.startswith('firnd: ') or ' fatal: ' in line
                     or ' error: ' in line]
            assert status == 1 and len(lines) == 1, (caller, good, status)
            assert caller != 'libcjson' or 'out of memory' in lines[0]
    print('exits of %d starts: %d' % (len(ends), ends.count(1)))
    assert 1 in ends and None in ends
    page['bad'] = 0
    loads = [load, bare_lab.load(agent.up(), rate=500).takes(50)]
    loads[1].stop()
    check(loads, workers=1)


def test_address_space(bare_lab):
    """A limit on a running agent: new clients are turned away with a line,
    those who are there notice nothing."""
    agent = static(bare_lab, 2).up(20, '--first-use')
    load = bare_lab.load(agent, threads=2, rate=500, timeout=5000).takes(50)
    pid = agent.process.pid
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with open('/proc/%d/statm' % pid) as f:
        size = int(f.read().split()[0]) * mmap.PAGESIZE
    before = resource.prlimit(pid, resource.RLIMIT_AS, (size, -1))
    crowd = []
    try:
        while not said(agent, 'no memory for a connection'):
            assert len(crowd) < 8000
            for _ in range(200):
                crowd.append(socket.socket(socket.AF_UNIX))
                crowd[-1].connect(agent.socket)
            load.takes(20)
    finally:
        for s in crowd:
            s.close()
    print('%d connections before memory ran out' % len(crowd))
    resource.prlimit(pid, resource.RLIMIT_AS, before)
    agent.serving()
    load.takes(50)
    assert load.stop()['failed'] == 0, load.events()
    check([load])


# ---- threads and descriptors -------------------------------------------------

def test_no_threads(lab, page):
    """Without ZooKeeper one line and 1.  With it the agent stays, says so,
    and goes on trying: for a name, for a handle."""
    alone = static(lab, 3, env=page.env)
    alone.may_fail = True
    page['no_threads'] = EVER
    assert alone.start('--first-use').process.wait(20) == 1
    assert said(alone, 'fatal: ', 'cannot start to write')
    realm = lab.realm()
    named = lab.agent(realm, hosts='localhost:%d' % lab.server.port,
                      conf=QUICK, env=page.env).start()
    agent = lab.agent(realm, conf=QUICK, env=page.env).start()
    wait.until(lambda: said(named, 'no session yet', 'looked up'), 20,
               named.tail)
    wait.until(lambda: said(agent, 'no session yet', 'does not start'), 20,
               agent.tail)
    page['no_threads'] = 0
    agent.serving(60)
    wait.until(lambda: said(named, 'cannot resolve localhost') or
               named.state() == 'serving', 60, named.tail)


def test_few_descriptors(lab):
    """Too few for the start are one line and 1; with 16 it stays, and says
    what that will lead to; with a few more it serves."""
    realm = lab.realm()
    few, sixteen, more, alone = agents = [
        lab.agent(realm, conf=QUICK) for _ in range(3)] + [static(lab, 4)]
    for agent, n in zip(agents, (9, 16, 32, 32)):
        agent.launcher = ['sh', '-c', 'ulimit -n %d; exec "$@"' % n, 'sh']
        agent.start(*(['--first-use'] if agent is alone else []))
    few.may_fail = True
    assert few.process.wait(20) == 1
    assert said(few, 'Too many open files')
    wait.until(lambda: said(sixteen, 'the limit of open files is 16'), 20,
               sixteen.tail)
    for agent in (more, alone):
        agent.serving()
        firn('next', '--socket', agent.socket)
    assert sixteen.process.running()


# ---- the disk ----------------------------------------------------------------

def test_disks_of_running_agents(lab, shim):
    """Full, read-only under open files, a limit of file sizes: with ZooKeeper
    it goes on without a file if that can go; else state_failed.  Back by
    itself."""
    realm = lab.realm()
    kinds = (errno.ENOSPC, errno.EROFS, errno.EFBIG)
    pages, agents = [], []
    for i, kind in enumerate(kinds):
        for alone in (False, True):
            page = Page('%s/page%d' % (lab.dir, len(pages)), shim)
            pages.append((kind, page))
            agents.append(
                static(lab, 600 + i, env=page.env).start('--first-use')
                if alone else
                lab.agent(realm, conf=QUICK, env=page.env).start())
    for agent in agents:
        agent.serving()
    workers = [a.worker() for a in agents]
    bears = [kind != errno.EROFS and agent.realm == realm.name
             for (kind, _), agent in zip(pages, agents)]
    loads = [lab.load(a, rate=500, timeout=5000 if b else 200,
                      pause=5).takes(50) for a, b in zip(agents, bears)]
    for (kind, page), agent in zip(pages, agents):
        if kind == errno.EFBIG:
            resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (0, -1))
        else:
            page['disk'] = kind
    for (kind, _), agent, load, bear in zip(pages, agents, loads, bears):
        if bear:
            if kind != errno.EFBIG:  # which holds for its log as well
                wait.until(lambda: said(agent, 'goes on without a file'), 20,
                           agent.tail)
            load.takes(2000)
            assert load.failed() == 0, load.events()
        else:
            agent.refuses('state_failed', 20)
            wait.until(load.failed, 20, 'calls are refused')
    for (kind, page), agent in zip(pages, agents):
        page['disk'] = 0
        resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (-1, -1))
    for agent, load in zip(agents, loads):
        agent.serving()
        load.takes(200)
    for (kind, _), agent in zip(pages, agents):
        if kind == errno.EFBIG:
            wait.until(lambda: said(agent, 'log lines lost'), 20, agent.tail)
    assert [a.worker() for a in agents] == workers
    for agent in agents:
        agent.kill()
        agent.start()
    for agent in agents:
        agent.serving()
    assert [a.worker() for a in agents][1::2] == workers[1::2]
    loads += [lab.load(a, rate=500).takes(50) for a in agents]
    for load in loads:
        load.stop()
    for zk in (0, 1):
        check(loads[zk::2])
