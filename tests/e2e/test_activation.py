# SPDX-License-Identifier: Apache-2.0
"""A service manager around the agent: it keeps the socket (LISTEN_FDS) and
hears how the agent is (NOTIFY_SOCKET).  The manager here is these tests."""

import os
import re
import signal
import socket
import statistics
import struct
import time

import pytest

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import clean_env, firn, program
from firnlab.load import check
from firnlab.process import Process

RESTARTS = 16  # every fourth by kill -9
# Descriptor $0 becomes 3, and the process that is told so goes on under the
# same pid.
LAUNCH = 'exec 3<&"$0" && LISTEN_PID=$$ LISTEN_FDS=${FDS-1} exec "$@"'


def launcher(fd):
    return ['bash', '-c', LAUNCH, str(fd)]


class Manager:
    """Binds and listens for an agent, whose process may come and go."""

    def __init__(self, agent):
        self.agent = agent
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(agent.socket)
        self.socket.listen(128)
        self.inode = os.stat(agent.socket).st_ino
        agent.launcher = launcher(self.socket.fileno())
        agent.pass_fds = (self.socket.fileno(),)

    def connect(self):
        """A client of the protocol that shows when it was answered."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        client.connect(self.agent.socket)
        return client

    def untouched(self):
        """The name in the file system is the manager's, as it was."""
        return os.stat(self.agent.socket).st_ino == self.inode

    def close(self):
        self.socket.close()


@pytest.fixture
def managed(lab):
    """An agent under a manager."""
    manager = Manager(lab.agent(lab.realm(), conf=QUICK))
    yield manager
    manager.close()


def ask_status(client):
    """Sends a request for the status: 32 bytes, type 3."""
    client.sendall(struct.pack('<BBHIQQQ', 1, 3, 0, 0, 7, 0, 0))


def read_status(client):
    """Reads until the document of the reply has begun."""
    data = b''
    while b'"state"' not in data:
        more = client.recv(65536)
        assert more, 'closed after %r' % data
        data += more
    client.close()


@pytest.mark.short
def test_who_waits_in_the_queue_is_served_by_the_next_agent(managed):
    """Connect while no agent runs, before the first and between two."""
    agent = managed.agent
    first = managed.connect()
    ask_status(first)
    agent.up()
    read_status(first)
    assert not os.path.exists(agent.socket + '.lock')
    agent.end()
    assert managed.untouched()
    second = managed.connect()
    ask_status(second)
    agent.start()
    read_status(second)
    agent.serving()
    agent.kill()
    third = managed.connect()
    ask_status(third)
    agent.up()
    read_status(third)
    assert managed.untouched()


def test_a_second_agent_is_held_off_by_the_state(lab, managed):
    """A manager that starts two on one socket: the state's lock, 1, and the
    first goes on."""
    first = managed.agent.up()
    second = lab.agent(first.realm, conf=QUICK)
    second.socket, second.state_dir = first.socket, first.state_dir
    second.launcher, second.pass_fds = first.launcher, first.pass_fds
    second.start()
    assert second.process.wait(20) == 1
    assert 'another firnd (pid %d) uses it' % first.process.pid \
        in second.log(), second.log()
    assert managed.untouched()
    client = managed.connect()
    ask_status(client)
    read_status(client)


def restart(agent, kill):
    """Ends it and starts it; when that began, and when it had ended"""
    begun = time.monotonic()
    if kill:
        agent.kill()
    else:
        agent.end()
    ended = time.monotonic()
    agent.start()
    return begun, ended


def pause(load, begun):
    """Seconds until applications get IDs again."""
    ids = load.ids()
    wait.until(lambda: load.ids() > ids, 20, 'IDs after a restart', 0.002)
    return time.monotonic() - begun


def control(seconds=20):
    """What it takes here just to start the program, seconds."""
    begun = time.monotonic()
    assert Process([program('firnd'), '--version'], os.devnull,
                   env=clean_env()).wait(seconds) == 0
    return time.monotonic() - begun


def test_restarts_under_load_are_a_pause_and_no_error(lab, managed):
    """SIGTERM and kill -9 with the socket kept: no call fails.

    What is asserted is a deadline of 5 s; of 1 s it is told how many failed,
    beside what starting any program took meanwhile.
    """
    agent = managed.agent.up()
    patient = [lab.load(agent, threads=2, rate=1000, timeout=5000),
               lab.load(agent, mode='many', batch=200, rate=100,
                        timeout=5000)]
    hasty = lab.load(agent, threads=2, rate=1000, timeout=1000)
    loads = patient + [hasty]
    for load in loads:
        load.takes(100)
    stops, pauses, controls = [], [], []
    for i in range(RESTARTS):
        controls.append(control())
        begun, ended = restart(agent, i % 4 == 3)
        stops.append(ended - begun)
        pauses.append(pause(hasty, begun))
        for load in loads:
            load.takes(50)
        assert managed.untouched()
    results = [load.stop() for load in loads]
    print('restarts: pause p50 %.0f ms, max %.0f ms, of it the stop p50 '
          '%.0f ms, max %.0f ms; longest call %s ms; calls with 1 s that '
          'failed: %d of %d; control (start of a program) max %.0f ms' % (
              1000 * statistics.median(pauses), 1000 * max(pauses),
              1000 * statistics.median(stops), 1000 * max(stops),
              [r['longest_ms'] for r in results], results[2]['failed'],
              results[2]['calls'], 1000 * max(controls)))
    for result in results[:2]:
        assert result['failed'] == 0, result
    check(loads, ttl=1000, lead=5)


# ---- what is handed over but cannot be used ----------------------------------

def refused(lab, sock, env=None):
    """The last line of an agent that is handed this; its status is 78."""
    agent = lab.agent('none', hosts='127.0.0.1:1', env=env)
    agent.launcher = launcher(sock.fileno())
    agent.pass_fds = (sock.fileno(),)
    agent.start()
    assert agent.process.wait(20) == 78, agent.tail()
    return agent.log().splitlines()[-1]


def test_a_wrong_socket_is_told_in_one_line(bare_lab, tmp_path):
    """Not a Unix stream socket that listens on a path: 78, and why."""
    with socket.socket() as tcp:
        tcp.bind(('127.0.0.1', 0))
        tcp.listen(1)
        assert 'not a Unix stream socket' in refused(bare_lab, tcp)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram:
        datagram.bind(bare_lab.dir + '/d')
        assert 'not a Unix stream socket' in refused(bare_lab, datagram)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(bare_lab.dir + '/s')
        assert 'does not listen' in refused(bare_lab, deaf)
        deaf.listen(1)
        assert '2 sockets' in refused(bare_lab, deaf, {'FDS': '2'})
        assert 'not a number' in refused(bare_lab, deaf, {'FDS': '1x'})
        assert 'too many' in refused(bare_lab, deaf, {'FDS': '2147483647'})
        assert 'too many' in refused(bare_lab, deaf, {'FDS': '9' * 30})
    with socket.socket(socket.AF_UNIX) as relative:
        here = os.getcwd()
        os.chdir(bare_lab.dir)
        try:
            relative.bind('r')
        finally:
            os.chdir(here)
        relative.listen(1)
        assert 'bound to "r", which does not begin with /' in refused(
            bare_lab, relative)
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind('\0firn-test-%d' % os.getpid())
        abstract.listen(1)
        assert 'no path' in refused(bare_lab, abstract)


def test_what_was_meant_for_another_process_is_ignored(bare_lab):
    """LISTEN_PID of someone else: it binds a socket of its own."""
    agent = bare_lab.agent('none', hosts='127.0.0.1:1', env={
        'LISTEN_PID': '1', 'LISTEN_FDS': '7'}).start()
    wait.until(lambda: agent.status(), 20, lambda: agent.tail())
    assert os.path.exists(agent.socket + '.lock')


def test_an_empty_variable_counts_as_none(bare_lab):
    agent = bare_lab.agent('none', hosts='127.0.0.1:1')
    agent.launcher = ['bash', '-c',
                      'LISTEN_PID=$$ LISTEN_FDS= exec "$0" "$@"']
    agent.start()
    wait.until(lambda: agent.status(), 20, lambda: agent.tail())
    assert os.path.exists(agent.socket + '.lock')


def test_a_removed_socket_is_the_managers_to_make(managed):
    """One line, and who is connected stays."""
    agent = managed.agent.up()
    old = managed.connect()
    aside = agent.socket + '.aside'
    os.rename(agent.socket, aside)
    said = 'it was removed, and new clients do not find this agent'
    wait.until(lambda: said in agent.log(), 40, lambda: agent.tail())
    with open(agent.socket, 'w'):
        pass
    time.sleep(2.5)  # two looks: still one line
    assert agent.log().count('new clients do not find') == 1, agent.tail()
    ask_status(old)
    read_status(old)
    os.rename(aside, agent.socket)


# ---- what the manager is told -------------------------------------------------

class Ear:
    """The manager's datagram socket."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(20)
        self.heard = []

    def until(self, line, seconds=20):
        """Listens until one of the lines begins so; returns that line."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lines = self.socket.recv(4096).decode().splitlines()
            self.heard += lines
            for text in lines:
                if text.startswith(line):
                    return text
        raise wait.Late('%s is not told, but %s' % (line, self.heard))


@pytest.mark.short
@pytest.mark.parametrize('abstract', [False, True])
def test_the_manager_is_told(lab, abstract):
    """READY, STATUS, WATCHDOG, RELOADING and READY, STOPPING."""
    agent = lab.agent(lab.realm(), conf=QUICK)
    name = '%s/notify' % lab.dir
    ear = Ear('\0' + name if abstract else name)
    agent.env = {'NOTIFY_SOCKET': ('@' if abstract else '') + name,
                 'WATCHDOG_USEC': '1000000'}
    agent.start()
    ear.until('READY=1')
    assert 'WATCHDOG=1' not in ear.heard
    ear.until('STATUS=serving, realm %s, worker ID ' % agent.realm)
    ear.until('WATCHDOG=1')
    ear.until('WATCHDOG=1')
    lines = [t for t in ear.heard if t.startswith('STATUS=')]
    assert len(lines) == len(set(lines)), lines

    before = time.clock_gettime(time.CLOCK_MONOTONIC)
    agent.process.signal(signal.SIGHUP)
    ear.until('RELOADING=1')
    since = [t for t in ear.heard if t.startswith('MONOTONIC_USEC=')]
    since = int(since[-1].split('=')[1]) / 1e6
    assert before <= since <= time.clock_gettime(time.CLOCK_MONOTONIC)
    ear.until('READY=1')
    with open(agent.base + '.json', 'w') as f:
        f.write('{ not JSON')
    agent.process.signal(signal.SIGHUP)
    ear.until('RELOADING=1')
    ear.until('READY=1')
    agent.serving()

    agent.process.signal(signal.SIGTERM)
    ear.until('STOPPING=1')
    assert agent.process.wait(20) == 0
    assert any(t.startswith('STATUS=draining') for t in ear.heard) or \
        ear.until('STATUS=draining')
    ear.socket.close()


def test_an_outage_is_told_once(lab):
    """ZooKeeper away and back: one line for each, whatever counts down."""
    proxy = lab.proxy()
    agent = lab.agent(lab.realm(), hosts=proxy.hosts, conf=QUICK)
    ear = Ear('%s/notify' % lab.dir)
    agent.env = {'NOTIFY_SOCKET': '%s/notify' % lab.dir}
    agent.start()
    serving = ear.until('STATUS=serving')
    agent.reserves(10000)
    proxy.refuse()
    line = ear.until('STATUS=isolated', 30)
    assert re.search(r', worker ID \d+, ZooKeeper is away, IDs until '
                     r'20\d\d-\S+Z$', line), line
    proxy.heal()
    assert ear.until('STATUS=serving', 30) == serving
    states = [t.split(',')[0] for t in ear.heard[ear.heard.index(serving):]
              if t.startswith('STATUS=')]
    assert all(a != b for a, b in zip(states, states[1:])), ear.heard
    ear.socket.close()


def test_a_hung_loop_feeds_no_watchdog(lab):
    """Stopped, it says nothing; going on, it does again."""
    agent = lab.agent(lab.realm(), conf=QUICK)
    ear = Ear('%s/notify' % lab.dir)
    agent.env = {'NOTIFY_SOCKET': '%s/notify' % lab.dir,
                 'WATCHDOG_USEC': '200000'}
    agent.start()
    ear.until('WATCHDOG=1')
    agent.freeze()
    ear.socket.settimeout(1)
    with pytest.raises(TimeoutError):
        while True:  # what was sent before
            ear.socket.recv(4096)
    agent.thaw()
    ear.socket.settimeout(20)
    ear.until('WATCHDOG=1')
    agent.serving().end()
    ear.socket.close()


@pytest.mark.short
def test_a_manager_that_is_gone_harms_nothing(lab):
    """NOTIFY_SOCKET of nobody, and one that is no address."""
    for address in ('%s/nobody' % lab.dir, 'vsock:2:1', '@', ''):
        agent = lab.agent(lab.realm(), conf=QUICK,
                          env={'NOTIFY_SOCKET': address})
        agent.up()
        assert firn('next', '--socket', agent.socket).out.strip().isdigit()
        agent.end()
