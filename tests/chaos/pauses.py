#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pause that an application sees when something below it fails: the
longest time between two IDs of a program that takes one each millisecond.

FIRN_BUILD=... pauses.py [--rounds N]; the table goes to standard output.
"""
import argparse
import mmap
import os
import shutil
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), 'e2e')]

from conftest import Lab  # noqa: E402
from firnlab import process, wait  # noqa: E402
from firnlab.load import SLOT  # noqa: E402
from test_activation import Manager  # noqa: E402

CONF = {'session_ms': 4000, 'log_level': 'info'}
GAP = 5  # the longest gap, in a slot of 64-bit numbers
THREAD = 1  # the slot of the only thread


class Gauge:
    """The longest gap of a load since it was last set to nothing."""

    def __init__(self, load):
        self.load = load
        with open(load.prefix + '.progress', 'r+b') as f:
            self.map = mmap.mmap(f.fileno(), 0)
        self.at = THREAD * SLOT.size + 8 * GAP

    def reset(self):
        self.map[self.at:self.at + 8] = bytes(8)

    def ms(self):
        return int.from_bytes(self.map[self.at:self.at + 8],
                              sys.byteorder) / 1e6


class Bench:
    def __init__(self, directory):
        self.lab = lab = Lab(directory, None)
        self.ensemble = lab.own_ensemble(tick=1000)
        self.realm = lab.realm()
        self.proxies = [lab.proxy(s) for s in self.ensemble.servers]
        self.plain = lab.agent(self.realm, conf=CONF, hosts=','.join(
            p.hosts for p in self.proxies))
        self.held = lab.agent(self.realm, conf=CONF)
        self.manager = Manager(self.held)
        self.gauges = {}
        for agent in (self.plain, self.held):
            agent.up().reserves(30000)
            load = lab.load(agent, rate=1000, timeout=1000).takes(100)
            self.gauges[agent] = Gauge(load)

    def settled(self):
        for agent in (self.plain, self.held):
            agent.wait_status(lambda d: d['state'] == 'serving'
                              and d['connected']
                              and (d['window_left_ms'] or 0) > 30000,
                              60, 'serves, with a full window')

    # -- what happens -------------------------------------------------------

    def nothing(self):
        time.sleep(0.5)

    def leader(self):
        old = self.ensemble.leader()
        old.kill()
        self.ensemble.leader(60)
        self.settled()
        old.start()

    def restart_held(self):
        self.held.end()
        self.held.start()

    def restart_plain(self):
        self.plain.end()
        self.plain.start()

    def kill_held(self):
        self.held.kill()
        self.held.start()

    def kill_plain(self):
        self.plain.kill()
        self.plain.start()

    def expiry(self):
        claim = self.plain.status()['claim']
        for proxy in self.proxies:
            proxy.hole()
        wait.until(lambda: claim not in self.realm.claims(), 30,
                   'the session expires')
        for proxy in self.proxies:
            proxy.heal()
        self.plain.wait_status(lambda d: d['connected'] and d['claim']
                               not in (None, claim), 60, 'a new claim')

    def all_servers(self):
        for server in self.ensemble.servers:
            server.kill()
        self.plain.wait_status(lambda d: not d['connected'], 30, 'away')
        self.ensemble.start(60)

    def measure(self, what, agent, rounds):
        """(p50, max) in ms, and calls that failed."""
        gauge, pauses = self.gauges[agent], []
        failed = gauge.load.failed()
        for _ in range(rounds):
            self.settled()
            gauge.load.takes(50)
            gauge.reset()
            what()
            gauge.load.takes(50, 60)
            self.settled()
            gauge.load.takes(50)
            pauses.append(gauge.ms())
        return statistics.median(pauses), max(pauses), \
            gauge.load.failed() - failed


def figure(ms):
    return '%.0f ms' % ms if ms >= 100 else '%.1f ms' % ms


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--rounds', type=int, default=20)
    rounds = p.parse_args().rounds
    directory = tempfile.mkdtemp(prefix='firn-pauses-', dir='/tmp')
    bench = Bench(directory)
    print('| what happens | p50 | longest of %d | calls that failed |'
          % rounds)
    print('|---|---|---|---|')
    for name, what, agent in (
            ('nothing', bench.nothing, bench.plain),
            ("ZooKeeper's leader is killed", bench.leader, bench.plain),
            ('the session expires', bench.expiry, bench.plain),
            ('all servers are killed and started again',
             bench.all_servers, bench.plain),
            ('agent restarted, the socket kept', bench.restart_held,
             bench.held),
            ('agent restarted, own socket', bench.restart_plain,
             bench.plain),
            ('agent killed, the socket kept', bench.kill_held, bench.held),
            ('agent killed, own socket', bench.kill_plain, bench.plain)):
        p50, longest, failed = bench.measure(what, agent, rounds)
        print('| %s | %s | %s | %d |' % (name, figure(p50), figure(longest),
                                         failed), flush=True)
    print('\nload average %.1f on %d processors' % (
        os.getloadavg()[0], os.cpu_count()))
    for gauge in bench.gauges.values():
        gauge.load.stop()
    bench.lab.close()
    process.end_all()
    shutil.rmtree(directory)


if __name__ == '__main__':
    main()
