# SPDX-License-Identifier: Apache-2.0
"""Three servers, five agents behind fault proxies, and their applications:
the laboratory of the end-to-end tests, and what chaos needs beside it.

Invariant: what the checker is told (who had which session, how far each clock
was ever off) is noted down before the fault can have an effect.
"""
import collections
import concurrent.futures
import os
import signal
import subprocess
import threading
import time

from conftest import Lab
from faultproxy import Proxy
from firnlab import wait
from firnlab.build import clean_env, firn, program, run
from firnlab.process import Process
import schedule
import txnlog

CONF = {'session_ms': 3000, 'renew_ms': 1000, 'op_deadline_ms': 800,
        'reserve_ms': 8000, 'skew_refuse_ms': 4000, 'audit_ms': 2000,
        'drain_ms': 300, 'log_level': 'debug'}
# few worker IDs, so that they change hands
REALM = ('--first', '--reserve-max', '8000', '--skew-refuse', '4000',
         '--workers', '0-11')
POLICIES = ({'on_step': 'wait'}, {'on_step': 'fail'}, {'on_step': 'logical'},
            {'on_step': 'wait', 'sequence_start': 'random'},
            {'on_step': 'logical', 'max_lead_ms': 5})
TTL_MS, LEAD_MS = 1000, 10  # borrowing and the tolerance of steps, 5 each
SERVES_SECONDS = 60  # after all is healed, times wait.PATIENCE
FORKS_PER_SECOND = 1
UNEXPECTED = ('FIRN_EINVAL', 'FIRN_ENOMEM', 'FIRN_EPROTO', 'FIRN_EREALM')


spawner = concurrent.futures.ThreadPoolExecutor(1)


def spawn(start, *args, **options):
    """Starts a process in a thread that lives as long as this program: the
    kernel ends children together with the thread that started them."""
    return spawner.submit(start, *args, **options).result()


def now_ms():
    return int(time.time() * 1000)


class Wrist:
    """The wall clock of one agent, moved at will, and how far it ever was
    off.  A rate is many small steps: libfaketime counts its own rates from
    the start of a process, and shows, for moments, one without its offset."""

    SLEW_SECONDS = 0.02
    SLACK = 0.05

    def __init__(self, clock):
        self.clock = clock
        self.rows = []  # [from_ms, behind, ahead], seconds

    def note(self, seconds, slack=0.0):
        self.rows.append((now_ms(), max(0.0, slack - seconds),
                          max(0.0, slack + seconds)))

    def step(self, seconds):
        self.note(seconds)
        self.clock.set(seconds)

    def slew(self, rate, seconds):
        """Runs at this rate from now on, for so long."""
        self.note((rate - 1) * seconds, self.SLACK)
        began = time.monotonic()
        ran = 0.0
        while ran < seconds:
            time.sleep(self.SLEW_SECONDS)
            ran = min(time.monotonic() - began, seconds)
            self.clock.set((rate - 1) * ran)

    def table(self):
        return ''.join('%d %d %d\n' % (at, behind * 1000 + 1,
                                       ahead * 1000 + 1)
                       for at, behind, ahead in self.rows)


class Crowd:
    """idcrash, which is killed and started again under another name."""

    def __init__(self, directory, name, socket, seed):
        self.base, self.socket = '%s/%s' % (directory, name), socket
        self.seed, self.lives, self.process = seed, 0, None
        self.killed = False

    def start(self):
        self.lives += 1
        self.process = spawn(
            Process, [program('idcrash'), self.socket,
                      '%s.%d' % (self.base, self.lives),
                      str(self.seed * 1000 + self.lives),
                      str(FORKS_PER_SECOND)],
            self.base + '.log', env=clean_env())
        return self

    def kill(self):
        self.process.kill()

    def files(self):
        head, tail = os.path.split(self.base + '.')
        return sorted('%s/%s' % (head, name) for name in os.listdir(head)
                      if name.startswith(tail) and name.endswith('.ids'))

    def ids(self):
        return sum(os.path.getsize(name) for name in self.files()) // 8

    def stop(self):
        self.process.signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.process.text()


class Seat:
    """One agent with its way to ZooKeeper, its clock, its disk and its
    applications."""

    def __init__(self, world, number):
        lab = world.lab
        self.world, self.number = world, number
        self.name = 'a%d' % number
        self.doors = [Proxy(s.port) for s in world.ensemble.servers]
        lab.proxies += self.doors
        self.agent = lab.host(
            world.realm, hosts=','.join(d.hosts for d in self.doors),
            conf=dict(CONF, **POLICIES[number]))
        self.agent.may_fail = True
        self.disk = self.mount('%s/%s.disk' % (lab.dir, self.name))
        self.agent.state_dir = self.disk + '/state'
        os.makedirs(self.agent.state_dir, 0o700, exist_ok=True)
        self.wrist = Wrist(self.agent.clock)
        self.loads, self.crowd = [], None
        self.wanted = False  # who manages services starts it again
        self.excuses = {}  # faults with which it may exit: until when
        self.lock = threading.RLock()

    def mount(self, path):
        os.makedirs(path, 0o700)
        if self.world.mounts:
            subprocess.run(['mount', '-t', 'tmpfs', '-o',
                            'size=64k,mode=0700', 'firn-chaos', path],
                           check=True)
        return path

    # -- the service manager ----------------------------------------------

    def start(self):
        with self.lock:
            self.wanted = True
            spawn(self.agent.start)

    def kill(self):
        with self.lock:
            self.wanted = False
            self.agent.kill()

    def end(self):
        """A clean stop; what it exits with."""
        with self.lock:
            self.wanted = False
            self.agent.process.signal(signal.SIGTERM)
            return self.agent.process.wait(20)

    def excuse(self, what):
        """It may exit; see sorry()."""
        self.excuses[what] = float('inf')

    def sorry(self, what):
        """Over; but what this did to it may be seen a little later."""
        self.excuses[what] = time.monotonic() + 5

    def tend(self):
        """As Restart=always does."""
        with self.lock:
            if not self.wanted or self.agent.process.running():
                return
            status = self.agent.process.status()
            excused = [what for what, until in sorted(self.excuses.items())
                       if time.monotonic() < until]
            self.world.say('%s exits with %d%s and is started again' % (
                self.name, status, ', as it may without %s,' % ' and '.join(
                    excused) if excused else ''))
            self.world.counts['exited'] += 1
            if status < 0 or status == 78 or not excused:
                self.world.wrong.append('%s exits with %d:\n%s' % (
                    self.name, status, self.tail()))
            spawn(self.agent.start)

    # -- applications -----------------------------------------------------

    def open_shop(self):
        lab = self.world.lab
        for options in (
                dict(threads=2, processes=1, rate=400, timeout=3000),
                dict(mode='many', batch=500, rate=self.world.rate,
                     timeout=3000),
                dict(mode='try', rate=100, timeout=500)):
            self.loads.append(lab.load(self.agent, **options))
        self.crowd = Crowd(lab.dir, 'crowd%d' % self.number,
                           self.agent.socket,
                           self.world.seed * 10 + self.number).start()

    def tail(self, n=40):
        """The end of its log, without who comes and goes."""
        lines = [x for x in self.agent.log().splitlines()
                 if 'debug: conn' not in x]
        return '\n'.join(lines[-n:])

    def heal(self):
        for door in self.doors:
            door.heal()

    def well(self):
        """Serves, has ZooKeeper, and is one of a fleet."""
        doc = self.agent.status()
        return doc.get('state') == 'serving' and doc.get('connected') and (
            doc.get('peers') or 0) >= 2


class World:
    def __init__(self, directory, seed, rate, mounts):
        self.lab = Lab(directory, None)
        self.seed, self.rate, self.mounts = seed, rate, mounts
        self.begun = time.monotonic()
        self.wrong = []  # what no fault excuses
        self.counts = collections.Counter()
        self.timeline = open(directory + '/timeline', 'w')
        self.talk = threading.Lock()
        self.of_all = threading.Lock()  # servers and realm are in repair
        self.seats = []
        self.closing = threading.Event()
        self.keeper = None

    def say(self, text):
        line = '%9.3f  %s' % (time.monotonic() - self.begun, text)
        with self.talk:
            print(line, flush=True)
            print(line, file=self.timeline, flush=True)

    def start(self):
        self.ensemble = self.lab.own_ensemble(tick=1000, clocks=True)
        self.realm = self.lab.realm(*REALM, name='chaos')
        self.backup = self.lab.dir + '/realm.json'
        self.back_up()
        self.seats = [Seat(self, i) for i in range(schedule.AGENTS)]
        for seat in self.seats:
            seat.start()
        for seat in self.seats:
            seat.agent.serving(60)
            seat.open_shop()
        self.keeper = threading.Thread(target=self.tend, daemon=True)
        self.keeper.start()

    def back_up(self):
        shown = firn('realm', 'show', '--json', '--zk', self.ensemble.hosts,
                     '--realm', self.realm.name).out
        with open(self.backup, 'w') as f:
            f.write(shown)

    def tend(self):
        while not self.closing.wait(0.5):
            for seat in self.seats:
                seat.tend()

    # -- liveness -----------------------------------------------------------

    def all_serve(self, what):
        """Nothing is wrong any more: each agent serves, and from each of its
        applications IDs flow."""
        began = time.monotonic()
        for seat in self.seats:
            wait.until(seat.well, SERVES_SECONDS, lambda: (
                '%s: %s serves again: %s\n%s' % (
                    what, seat.name, seat.agent.status(),
                    seat.tail())), 0.1)
        served = time.monotonic() - began
        goals = [(part, part.ids() + 50) for seat in self.seats
                 for part in seat.loads + [seat.crowd]]
        for part, goal in goals:
            wait.until(lambda: part.ids() >= goal, SERVES_SECONDS, lambda: (
                '%s: %d more IDs from %s: %d' % (what, goal, part.socket,
                                                  part.ids())))
        self.say('%s: all serve after %.1f s, IDs flow from all after %.1f s'
                 % (what, served, time.monotonic() - began))

    # -- the end --------------------------------------------------------------

    def stop(self):
        """Ends all of it in order: applications, agents, servers."""
        self.closing.set()
        self.keeper.join(60)
        results = []
        for seat in self.seats:
            for load in seat.loads:
                load.process.signal(signal.SIGTERM)
            seat.crowd.stop()
            results += [load.finish(60) for load in seat.loads]
        for seat in self.seats:
            status = seat.end()
            if status != 0:
                self.wrong.append('%s: a clean stop exits with %d' % (
                    seat.name, status))
        return results

    def windows(self):
        agent_of = {}
        for seat in self.seats:
            for door in seat.doors:
                for session in door.sessions:
                    assert agent_of.setdefault(session, seat.name) \
                        == seat.name, 'a session of two agents'
        for server in self.ensemble.servers:
            server.kill()
        return txnlog.Windows(txnlog.read_servers(
            [s.dir for s in self.ensemble.servers]), agent_of)

    def judge(self, windows):
        """idcheck on every ID that anybody got."""
        args = ['--ttl', TTL_MS, '--lead', LEAD_MS]
        for seat in self.seats:
            names = {'windows': ''.join('%d %d %d\n' % row for row in sorted(
                windows.allowed.get(seat.name, []))),
                'clock': seat.wrist.table()}
            for name, text in names.items():
                path = '%s/%s.%s' % (self.lab.dir, seat.name, name)
                with open(path, 'w') as f:
                    f.write(text)
                args += ['--' + name, path]
            for part in seat.loads + [seat.crowd]:
                args += part.files()
        return run('idcheck', *args, status=None, seconds=600)

    def close(self):
        self.closing.set()
        for seat in self.seats:
            if seat.crowd and seat.crowd.process.running():
                seat.crowd.kill()
        self.wrong += self.lab.close()
        self.timeline.close()
