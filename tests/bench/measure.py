# SPDX-License-Identifier: Apache-2.0
"""What is measured, in which order, against which agent."""
import os
import subprocess
import sys
import time

from firnlab import zoo
from firnlab.agent import Agent
from firnlab.build import BUILD, SOURCE, clean_env, firn
from firnlab.process import Process

import peers

TICKS = os.sysconf('SC_CLK_TCK')
LAYOUTS = {'wide': '41/2/20', 'default': '41/10/12', 'eight': '41/8/14'}


def program(name):
    return os.path.join(BUILD, name)


def cpu_seconds(pid):
    with open('/proc/%d/stat' % pid) as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_kb(pid):
    with open('/proc/%d/status' % pid) as f:
        for line in f:
            if line.startswith('VmRSS:'):
                return int(line.split()[1])
    return 0


def wakeups(pid):
    """{thread's name: how often it slept and woke}"""
    found = {}
    for task in os.listdir('/proc/%d/task' % pid):
        base = '/proc/%d/task/%s/' % (pid, task)
        with open(base + 'comm') as f:
            name = '%s %s' % (f.read().strip(), task)
        with open(base + 'status') as f:
            found[name] = next(int(line.split()[1]) for line in f
                               if line.startswith('voluntary_ctxt'))
    return found


class Run:
    """values: {name: [one value a round]}, in the units that rows.py says;
    absent: {peer: why}."""

    def __init__(self, directory, sizes):
        self.dir = directory
        self.sizes = sizes
        self.values = {}
        self.absent = {}
        self.agents = {}
        self.peers = {}
        self.server = None
        self.crowds = 0
        self.counted = True

    # -- what runs --------------------------------------------------------

    def start_peers(self):
        for kind in (peers.Redis, peers.Postgres, peers.Uuidd):
            peer = kind('%s/%s' % (self.dir, kind.name))
            why = peer.start()
            self.peers[kind.name] = peer
            if why is not None:
                self.absent[kind.name] = why
                self.say('%s: %s' % (kind.name, why))

    def start_agents(self):
        # as in production: written to disk before it is acknowledged
        self.server = zoo.Server(
            self.dir + '/zk', tick=2000,
            java=['-Dzookeeper.forceSync=yes', '-XX:TieredStopAtLevel=4'])
        self.server.start()
        for name, bits in LAYOUTS.items():
            firn('realm', 'create', '--zk', self.server.hosts, '--realm', name,
                 '--bits', bits, '--first')
            agent = Agent(self.dir, name, self.server.hosts, name,
                          {'log_level': 'info'})
            self.agents[name] = agent.up()
        for agent in self.agents.values():
            agent.reserves(30000)

    def close(self):
        for agent in self.agents.values():
            if agent.process is not None and agent.process.running():
                agent.end()
        for peer in self.peers.values():
            peer.end()

    def say(self, text):
        print('# ' + text, file=sys.stderr, flush=True)

    # -- running a program ------------------------------------------------

    def note(self, name, value):
        self.values.setdefault(name, []).append(value)

    def read_rows(self, text):
        for line in text.splitlines():
            name, _, value = line.partition(' ')
            if value:
                self.note(name, float(value))

    def spawn(self, argv, agent=None):
        env = clean_env({'FIRN_SOCKET': agent.socket} if agent else None)
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=env,
                                stdout=subprocess.PIPE, text=True)

    def take(self, *argv, agent=None):
        child = self.spawn([program(argv[0]), *map(str, argv[1:])], agent)
        out, _ = child.communicate(timeout=600)
        if child.returncode != 0:
            sys.exit('%s: exit status %d' % (' '.join(map(str, argv)),
                                             child.returncode))
        self.read_rows(out)

    # -- one round --------------------------------------------------------

    def peer(self, name, *argv):
        if name not in self.absent:
            self.take('bench_peer', *argv)

    def round(self):
        wide = self.agents['wide']
        self.take('bench_stub', 'control')
        self.take('bench_kinds')
        for _ in range(3):  # short ones: a neighbour spoils one, not all
            self.take('bench_stub', 'cached', agent=wide)
            self.take('bench_peer', 'generator')
            self.take('bench_stub', 'paced', agent=wide)
            self.peer('uuidd', 'uuid')
        self.take('bench_stub', 'many', agent=wide)
        self.take('bench_stub', 'uncached', agent=wide)
        self.take('bench_peer', 'echo')
        if 'Redis' not in self.absent:
            self.peer('Redis', 'redis', self.peers['Redis'].socket)
        if 'PostgreSQL' not in self.absent:
            self.peer('PostgreSQL', 'postgres',
                      self.peers['PostgreSQL'].socket)
        self.take('bench_stub', 'short', agent=wide)
        self.first()
        self.crowd()
        self.fairness()

    def first(self):
        """A host that comes up: no state file, a realm and a server there."""
        agent = Agent(self.dir, 'first%d' % time.monotonic_ns(),
                      self.server.hosts, 'default')
        self.take('bench_agent', 'first', program('firnd'), '--zk',
                  agent.hosts, '--realm', 'default', '--socket', agent.socket,
                  '--state-dir', agent.state_dir, '--log-level', 'error',
                  agent=agent)

    def crowd(self):
        """An agent of its own, since memory once used stays resident."""
        self.crowds += 1
        base = '%s/crowd%d' % (self.dir, self.crowds)
        os.makedirs(base + '.state')
        with open(base + '.json', 'w') as f:
            f.write('{"max_clients": 20000, "log_level": "error"}')
        agent = Agent(self.dir, 'crowd%d' % self.crowds, '', '')
        agent.process = Process(
            [program('firnd'), '--config', base + '.json', '--static-worker',
             '1', '--first-use', '--layout', '41/10/12', '--epoch',
             '2025-01-01T00:00:00Z', '--socket', agent.socket, '--state-dir',
             agent.state_dir], base + '.log', env=clean_env())
        agent.serving()
        self.take('bench_agent', 'crowd', self.sizes['crowd'], 100,
                  agent.process.pid, agent=agent)
        agent.end(30)

    # -- for longer -------------------------------------------------------

    def window(self, seconds):
        """Arguments of a window that begins when all are warm."""
        start = time.monotonic_ns() + 1500000000
        return str(start), str(start + int(seconds * 1e9))

    def fairness(self):
        agent = self.agents['default']
        window = self.window(self.sizes['fairness'])
        argv = [program('bench_stub'), 'greedy', *window]
        greedy = [self.spawn(argv, agent) for _ in range(7)]
        self.take('bench_stub', 'meter', *window, agent=agent)
        for child in greedy:
            child.communicate(timeout=60)

    def saturate(self, name, clients, row):
        agent, seconds = self.agents[name], self.sizes['saturation']
        window = self.window(seconds)
        argv = [program('bench_stub'), 'greedy', *window]
        children = [self.spawn(argv, agent) for _ in range(clients)]
        time.sleep(max(0, int(window[0]) - time.monotonic_ns()) / 1e9)
        cpu, then = cpu_seconds(agent.process.pid), time.monotonic()
        time.sleep(max(0, int(window[1]) - time.monotonic_ns()) / 1e9)
        cpu = cpu_seconds(agent.process.pid) - cpu
        self.note(row + '_cpu', 100 * cpu / (time.monotonic() - then))
        ids = 0.0
        for child in children:
            out, _ = child.communicate(timeout=60)
            if child.returncode != 0:
                sys.exit('greedy: exit status %d' % child.returncode)
            ids += float(out.split()[1])
        bits = int(LAYOUTS[name].split('/')[2])
        self.note(row, 100 * ids / seconds / (1000 << bits))

    def idle(self):
        agent = self.agents['eight']  # nobody has asked it for anything yet
        pid, seconds = agent.process.pid, self.sizes['idle']
        before, cpu = wakeups(pid), cpu_seconds(pid)
        time.sleep(seconds)
        after = wakeups(pid)
        self.note('idle_rss_mb', resident_kb(pid) / 1024)
        self.note('idle_cpu', 100 * (cpu_seconds(pid) - cpu) / seconds)
        self.note('idle_wakeups', sum(after.values()) / seconds
                  - sum(before.values()) / seconds)
        for name in sorted(after):
            self.say('idle: %s wakes %.2f times a second' % (
                name, (after[name] - before.get(name, 0)) / seconds))

    def fleet(self):
        child = self.spawn(
            [program('zkload'), str(self.server.port),
             str(self.sizes['sessions']), str(self.sizes['fleet'])])
        assert child.stdout.readline() == 'ready\n'
        pid = self.server.process.pid
        cpu, then = cpu_seconds(pid), time.monotonic()
        out, _ = child.communicate(timeout=600)
        if child.returncode != 0:
            sys.exit('zkload: exit status %d' % child.returncode)
        self.note('zk_cpu', 100 * (cpu_seconds(pid) - cpu)
                  / (time.monotonic() - then))
        self.read_rows(out)

    def instructions(self):
        done = subprocess.run(
            ['bash', SOURCE + '/tests/bench/callgrind.sh'],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ))
        for line in done.stdout.splitlines():
            self.say('instructions: ' + line)
            name, _, value = line.partition(' ')
            if name in ('next', 'request'):
                self.note('instructions_' + name, float(value))
        if done.returncode == 77:
            self.absent['valgrind'] = 'not installed'
        self.counted = done.returncode in (0, 77)

    def all(self):
        self.start_peers()
        self.start_agents()
        self.say('an agent that nobody asks')
        self.idle()
        for i in range(self.sizes['rounds']):
            self.say('round %d of %d' % (i + 1, self.sizes['rounds']))
            self.round()
        for name, clients, row in (('default', 1, 'saturation_1'),
                                   ('default', 8, 'saturation_8'),
                                   ('eight', 8, 'saturation_eight')):
            self.say('%s: %d clients, %d s' % (row, clients,
                                               self.sizes['saturation']))
            self.saturate(name, clients, row)
        self.say('%d sessions' % self.sizes['sessions'])
        self.fleet()
        self.say('instructions')
        self.instructions()
