# SPDX-License-Identifier: Apache-2.0
"""A fleet of real agents on one machine, each as if on a host of its own:
what fleet.py --agents measures.

Each is a firnd with the times of the defaults and a boot ID of its own (so
that its clock has a vote), which is the one thing that needs the testing
build.
"""
import calendar
import os
import re
import signal
import statistics
import time
import uuid

from firnlab import wait, zoo
from firnlab.agent import Agent
from firnlab.build import firn
from firnlab.realm import Realm
from measure import cpu_seconds, resident_kb, wakeups

SERVES = re.compile(r'^(\S+)Z .* -> serves', re.M)
PATIENCE = 200  # seconds, three times that for a slow machine


def cpu_ns(pid):
    """Of all threads; finer than the ticks of /proc/PID/stat."""
    total = 0
    for task in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/schedstat' % (pid, task)) as f:
            total += int(f.read().split()[0])
    return total


def unix_s(text):
    """Of "2026-01-01T00:00:00.123", UTC."""
    whole, _, ms = text.partition('.')
    return calendar.timegm(time.strptime(whole, '%Y-%m-%dT%H:%M:%S')) \
        + int(ms or 0) / 1000


class Fleet:
    def __init__(self, directory, n, row, summary):
        self.n, self.row, self.summary = n, row, summary
        self.server = zoo.Server(directory + '/zk', tick=2000, java=[
            '-Dzookeeper.forceSync=yes', '-XX:TieredStopAtLevel=4',
            '-Xmx512m']).start()
        firn('realm', 'create', '--first', '--bits', '41/13/9', '--zk',
             self.server.hosts, '--realm', 'r')
        self.realm = Realm(self.server, 'r')
        self.agents = [
            Agent(directory, 'a%d' % i, self.server.hosts, 'r',
                  {'log_level': 'info'}, testing=True,
                  env={'FIRN_TEST_BOOT_ID': str(uuid.uuid4())})
            for i in range(n)]

    def counts(self):
        """(reads, writes, packets) that the server has had."""
        text = zoo.four_letters(self.server.port, 'mntr', 10)
        found = dict(line.split('\t') for line in text.splitlines()
                     if '\t' in line)
        return [float(found['zk_' + name]) for name in (
            'cnt_readlatency', 'cnt_updatelatency', 'packets_received')]

    # -- together up, together down ---------------------------------------

    def serving(self):
        doc, _, _ = self.summary(self.realm)
        return doc.get('agents', {}).get('serving') == self.n

    def start(self):
        begun = time.time()
        for agent in self.agents:
            agent.begun = time.time()
            agent.start()
        self.row('started_s', time.time() - begun)
        wait.until(self.serving, PATIENCE, 'the summary says that all serve',
                   1)
        self.row('summary_says_so_s', time.time() - begun)
        took, last = [], 0
        for agent in self.agents:
            first = unix_s(SERVES.search(agent.log()).group(1))
            took.append(first - agent.begun)
            last = max(last, first)
        self.row('all_serve_s', last - begun)
        self.row('one_serves_p50_s', statistics.median(took))
        self.row('one_serves_max_s', max(took))

    def stop(self):
        begun = time.time()
        for agent in self.agents:
            agent.process.signal(signal.SIGTERM)
        for agent in self.agents:
            agent.process.wait(60)
        self.row('all_stopped_s', time.time() - begun)
        self.server.kill()

    # -- a quiet minute ---------------------------------------------------

    def sweeps(self, seconds):
        """How long each sweep of this time took, in ms."""
        found, end = {}, time.monotonic() + seconds
        while time.monotonic() < end:
            doc, stat, size = self.summary(self.realm)
            found[stat.version] = doc['took_ms']
            self.size = size
            time.sleep(1)
        return list(found.values())

    def measure(self, seconds):
        pids = [agent.process.pid for agent in self.agents]
        cpu = [cpu_ns(pid) for pid in pids]
        woke = sum(sum(wakeups(pid).values()) for pid in pids)
        server, counts = cpu_seconds(self.server.process.pid), self.counts()
        begun = time.monotonic()
        sweeps = self.sweeps(seconds)
        took = time.monotonic() - begun
        counts = [b - a for a, b in zip(counts, self.counts())]
        server = cpu_seconds(self.server.process.pid) - server
        cpu = [(cpu_ns(pid) - a) / 1e7 / took for a, pid in zip(cpu, pids)]
        woke = sum(sum(wakeups(pid).values()) for pid in pids) - woke
        for name, count in zip(('reads', 'writes', 'packets'), counts):
            self.row(name + '_per_s', count / took)
        self.row('server_cpu_percent', 100 * server / took)
        self.row('server_rss_mb',
                 resident_kb(self.server.process.pid) / 1024)
        self.row('agent_cpu_percent_p50', statistics.median(cpu))
        self.row('auditor_cpu_percent', max(cpu))
        self.row('agents_cpu_percent', sum(cpu))
        self.row('agent_wakeups_per_s', woke / took / self.n)
        self.row('agent_rss_mb_p50', statistics.median(
            resident_kb(pid) for pid in pids) / 1024)
        self.row('sweeps', len(sweeps))
        self.row('sweep_ms_p50', statistics.median(sweeps))
        self.row('sweep_ms_max', max(sweeps))
        self.row('summary_bytes', self.size)

    # -- the auditor dies -------------------------------------------------

    def take_over(self):
        doc, _, _ = self.summary(self.realm)
        old = doc['auditor']['claim']
        pid = next(m['status']['pid'] for m in self.realm.marks().values()
                   if m['owner'] == old)
        agent = next(a for a in self.agents if a.process.pid == pid)
        agent.kill()
        killed = time.time()
        self.agents.remove(agent)
        seen = {}

        def other():
            now, stat, _ = self.summary(self.realm)
            if now['auditor']['claim'] == old:
                seen['last'] = stat.mtime
                return None
            return stat.mtime
        wait.until(lambda: 'last' in seen or other(), 5, 'the summary')
        taken = wait.until(other, PATIENCE, 'another auditor', 0.1)
        self.row('takeover_after_kill_s', taken / 1000 - killed)
        self.row('takeover_after_last_write_s',
                 (taken - seen['last']) / 1000)


def measure(directory, n, seconds, row, summary):
    row('agents', n)
    fleet = Fleet(directory, n, row, summary)
    fleet.start()
    time.sleep(30)  # past the first windows, which are short
    fleet.measure(seconds)
    fleet.take_over()
    fleet.stop()
