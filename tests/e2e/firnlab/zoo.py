# SPDX-License-Identifier: Apache-2.0
"""Real ZooKeeper servers, one or three, in a directory of their own."""
import os
import re
import shutil
import socket

from . import wait
from .jute import Zoo
from .process import Process, free_port

JAVA = '/usr/share/java/'
JARS = ':'.join(JAVA + jar for jar in (
    'zookeeper.jar', 'slf4j-log4j12.jar', 'log4j-1.2.jar'))
# for its TLS port
NETTY = ':'.join(JAVA + 'netty-%s.jar' % part for part in (
    'buffer', 'codec', 'common', 'handler', 'resolver', 'transport',
    'transport-native-epoll', 'transport-native-unix-common'))
CONFIG = '''tickTime=%(tick)d
initLimit=10
syncLimit=5
dataDir=%(data)s
clientPortAddress=127.0.0.1
clientPort=%(port)d
admin.enableServer=false
4lw.commands.whitelist=*
maxClientCnxns=0
minSessionTimeout=1000
maxSessionTimeout=60000
'''
LOG4J = '''log4j.rootLogger=INFO, C
log4j.appender.C=org.apache.log4j.ConsoleAppender
log4j.appender.C.layout=org.apache.log4j.PatternLayout
log4j.appender.C.layout.ConversionPattern=%d{ISO8601} %-5p %m%n
'''


def missing():
    """What must be installed before a server can run, or None."""
    if shutil.which('java') is None:
        return 'no java (Debian package default-jre-headless)'
    if not os.path.exists(JAVA + 'zookeeper.jar'):
        return 'no ZooKeeper server (Debian package libzookeeper-java)'
    return None


def four_letters(port, command, timeout=1.0):
    """The answer to a four-letter word; '' if there is none in time."""
    try:
        with socket.create_connection(('127.0.0.1', port), timeout) as s:
            s.settimeout(timeout)
            s.sendall(command.encode())
            parts = []
            while True:
                part = s.recv(65536)
                if not part:
                    return b''.join(parts).decode(errors='replace')
                parts.append(part)
    except OSError:
        return ''


class Server:
    """One server process; directory and port stay over restarts."""

    def __init__(self, directory, number=1, peers='', tick=1000, java=()):
        self.java = list(java)  # more of its options
        self.dir = str(directory)
        self.number = number
        self.port = free_port()
        self.process = None
        self.clock = None  # a faketime.Clock, for launch()
        os.makedirs(self.dir + '/data')
        self.configure(peers, tick)

    def configure(self, peers, tick):
        with open(self.dir + '/zoo.cfg', 'w') as f:
            f.write(CONFIG % {'tick': tick, 'data': self.dir + '/data',
                              'port': self.port} + peers)
        with open(self.dir + '/log4j.properties', 'w') as f:
            f.write(LOG4J)
        with open(self.dir + '/data/myid', 'w') as f:
            f.write('%d\n' % self.number)

    @property
    def hosts(self):
        return '127.0.0.1:%d' % self.port

    def launch(self):
        assert self.process is None or not self.process.running()
        self.process = Process(
            ['java', '-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1',
             '-Xshare:auto', '-Dzookeeper.snapshot.trust.empty=true',
             '-Dzookeeper.forceSync=no', '-Dzookeeper.preAllocSize=4096',
             '-Dzookeeper.jmx.log4j.disable=true', *self.java,
             '-cp', self.dir + ':' + JARS + ':' + NETTY,
             'org.apache.zookeeper.server.quorum.QuorumPeerMain',
             self.dir + '/zoo.cfg'], self.dir + '/log',
            env=self.clock.env if self.clock else None)
        if self.clock:
            self.clock.pids.append(self.process.pid)

    def start(self, seconds=30):
        self.launch()
        self.ready(seconds)
        return self

    def ready(self, seconds=30):
        """imok comes too early: `srvr` answers once it really serves."""
        def up():
            assert self.process.running(), self.process.text()[-2000:]
            return 'Mode:' in four_letters(self.port, 'srvr', 0.5)
        wait.until(up, seconds, lambda: self.process.text()[-2000:])

    def kill(self):
        self.process.kill()

    def freeze(self):
        self.process.stop()

    def thaw(self):
        self.process.cont()

    def leads(self):
        return re.search('Mode: (leader|standalone)',
                         four_letters(self.port, 'srvr')) is not None

    # -- data -------------------------------------------------------------

    def wipe(self):
        """The server must be down: all data are gone."""
        assert not self.process.running()
        shutil.rmtree(self.dir + '/data/version-2', ignore_errors=True)

    def save(self, name):
        """Puts a copy of the data aside (as a backup of a live disk)."""
        shutil.copytree(self.dir + '/data', self.dir + '/' + name)

    def roll_back(self, name):
        assert not self.process.running()
        shutil.rmtree(self.dir + '/data')
        shutil.copytree(self.dir + '/' + name, self.dir + '/data')

    # -- looks ------------------------------------------------------------

    def client(self, timeout=10.0):
        return Zoo(self.port, timeout)

    def sessions(self):
        """Number of live sessions, as the server says (`cons`)."""
        return len(re.findall(r'sid=0x', four_letters(self.port, 'cons')))


class Ensemble:
    """Three servers."""

    def __init__(self, directory, tick=1000):
        self.servers = []
        ports = [(free_port(), free_port()) for _ in range(3)]
        peers = ''.join('server.%d=127.0.0.1:%d:%d\n' % (i + 1, a, b)
                        for i, (a, b) in enumerate(ports))
        for i in range(3):
            self.servers.append(
                Server('%s/%d' % (directory, i + 1), i + 1, peers, tick))

    @property
    def hosts(self):
        return ','.join(s.hosts for s in self.servers)

    def start(self, seconds=60):
        for s in self.servers:
            s.launch()
        for s in self.servers:
            s.ready(seconds)
        return self

    def leader(self, seconds=30):
        return wait.until(
            lambda: next((s for s in self.servers
                          if s.process.running() and s.leads()), None),
            seconds, 'a leader')

    def client(self, timeout=10.0):
        return self.leader().client(timeout)
