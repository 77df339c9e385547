# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a shared ZooKeeper, servers of one's own, agents, loads.

`lab` is what tests work with.  At a test's end it ends every process, looks
through every log for a sanitizer's report, and removes what a passed test has
no more use for.
"""
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True

import pytest  # noqa: E402

from faultproxy import Proxy  # noqa: E402
from firnlab import process, zoo  # noqa: E402
from firnlab.agent import Agent  # noqa: E402
from firnlab.build import BUILD, built, firn  # noqa: E402
from firnlab.faketime import Clock, Host  # noqa: E402
from firnlab.load import Load  # noqa: E402
from firnlab.realm import Realm  # noqa: E402

SOCKET_ROOM = 80  # a longer directory leaves no room for a socket's name


def pytest_configure(config):
    config.addinivalue_line(
        'markers', 'short: also run with sanitizers, seconds each')
    config.addinivalue_line(
        'markers', 'real_time: measures times; not with sanitizers')
    config.addinivalue_line(
        'markers', 'browser: needs Chromium and Node.js')
    config.addinivalue_line(
        'markers', 'long: more of the same, for a night\'s run')


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    setattr(item, 'report_' + report.when, report)


class Lab:
    """What one test starts, and how it ends."""

    def __init__(self, directory, server):
        self.dir = str(directory)
        self.server = server  # the shared one, or the test's own
        self.agents = []
        self.loads = []
        self.proxies = []
        self.servers = []
        self.clocks = []

    # -- ZooKeeper --------------------------------------------------------

    def own_server(self, tick=1000, offset=None, java=()):
        """A server that the test may harm; realms go there from now on.
        With an offset it has a wall clock of its own."""
        server = zoo.Server('%s/zk%d' % (self.dir, len(self.servers)),
                            tick=tick, java=java)
        self.servers.append(server)
        if offset is not None:
            self.give_clock(server, offset)
        self.server = server.start()
        return server

    def give_clock(self, server, offset=0.0):
        server.clock = Clock(server.dir + '/server', offset)
        self.clocks.append(server.clock)

    def own_ensemble(self, tick=1000, clocks=False):
        """Three servers; with clocks each has a wall clock of its own."""
        ensemble = zoo.Ensemble(self.dir + '/ens', tick)
        self.servers += ensemble.servers
        if clocks:
            for server in ensemble.servers:
                self.give_clock(server)
        self.server = ensemble.start()
        return ensemble

    def proxy(self, server=None):
        proxy = Proxy((server or self.server).port)
        self.proxies.append(proxy)
        return proxy

    @staticmethod
    def unused_name():
        """Of a realm that no other test on this server has made, or will."""
        return 'r%s' % os.urandom(4).hex()

    def realm(self, *flags, name=None):
        """Creates a realm; without flags one that nothing ever served."""
        name = name or self.unused_name()
        firn('realm', 'create', '--zk', self.server.hosts, '--realm', name,
             *(flags or ('--first',)))
        return Realm(self.server, name)

    # -- agents and their load --------------------------------------------

    def agent(self, realm, hosts=None, conf=None, **options):
        """An agent, not started yet."""
        agent = Agent(self.dir, 'a%d' % len(self.agents),
                      hosts or self.server.hosts,
                      getattr(realm, 'name', realm), conf, **options)
        self.agents.append(agent)
        return agent

    def host(self, realm, offset=0.0, hosts=None, conf=None, **options):
        """An agent on a host of its own, with a wall clock of its own that
        is so many seconds off; not started yet."""
        host = Host(self.dir, 'h%d' % len(self.agents),
                    hosts or self.server.hosts, getattr(realm, 'name', realm),
                    conf, offset, **options)
        self.agents.append(host)
        self.clocks.append(host.clock)
        return host

    def load(self, agent, **options):
        load = Load(self.dir, 'load%d' % len(self.loads),
                    getattr(agent, 'socket', agent), **options)
        self.loads.append(load)
        return load

    # -- the end ----------------------------------------------------------

    def processes(self):
        return [x.process for x in self.agents + self.loads + self.servers
                if x.process is not None]

    def close(self):
        """Ends everything; returns what it found wrong."""
        wrong = []
        for load in self.loads:
            if load.process.running():
                load.process.kill()
        for agent in self.agents:
            if agent.process is None or not agent.process.running():
                continue
            try:
                agent.end()
            except AssertionError as e:
                if not agent.may_fail:
                    wrong.append(str(e))
                agent.process.kill()
        for proxy in self.proxies:
            proxy.close()
        for server in self.servers:
            if server.process is not None and server.process.running():
                server.process.kill()
        for clock in self.clocks:
            clock.sweep()
        for p in self.processes():
            fault = p.fault()
            if fault:
                wrong.append('%s: %s' % (p.log, fault))
        return wrong


@pytest.fixture(scope='session')
def shared_server(tmp_path_factory):
    """One server for all tests that do not harm it; realms keep them apart."""
    server = zoo.Server(tmp_path_factory.mktemp('zk'))
    server.start()
    yield server
    server.kill()


def directory(tmp_path):
    """tmp_path, or a shorter one where a socket's name would not fit."""
    if len(str(tmp_path)) <= SOCKET_ROOM:
        return str(tmp_path)
    return tempfile.mkdtemp(prefix='firn-e2e-', dir='/tmp')


@pytest.fixture
def bare_lab(request, tmp_path):
    """A lab without a ZooKeeper."""
    if not built('firn', 'firnd', 'idload', 'idcheck'):
        pytest.fail('%s holds no build: set FIRN_BUILD' % BUILD)
    lab = Lab(directory(tmp_path), None)
    yield lab
    wrong = lab.close()
    report = getattr(request.node, 'report_call', None)
    if report is not None and report.passed and not wrong:
        shutil.rmtree(lab.dir, ignore_errors=True)
    elif report is not None:
        print('files are in', lab.dir)
        for load in lab.loads:
            load.remove()
    assert not wrong, '\n'.join(wrong)


@pytest.fixture
def zookeeper():
    """Skips nothing: a machine that cannot run the tests fails them."""
    reason = zoo.missing()
    if reason:
        pytest.fail(reason)


@pytest.fixture
def lab(zookeeper, shared_server, bare_lab):
    """A lab on the shared server."""
    bare_lab.server = shared_server
    return bare_lab


@pytest.fixture
def own_lab(zookeeper, bare_lab):
    """A lab whose test starts servers of its own."""
    return bare_lab


def pytest_sessionfinish():
    process.end_all()
