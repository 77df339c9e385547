# SPDX-License-Identifier: Apache-2.0
"""From a clock's step to the alert and to the refusal: figures.

A real fleet of three; one of its hosts steps, under load.  With FIRN_FIGURES
in the environment it is what RUNBOOK.md prints: the times of the defaults, and
twenty steps of each kind; without it a few, with short times.
"""
import concurrent.futures
import json
import os
import statistics
import time

import pytest

from firnlab import wait
from firnlab.jute import NoNode
from firnlab.load import check, numbers

FULL = 'FIRN_FIGURES' in os.environ
FLEETS, ROUNDS = (5, 4) if FULL else (1, 1)
CONF = {} if FULL else {'session_ms': 4000, 'renew_ms': 300,
                        'op_deadline_ms': 250, 'audit_ms': 1000}
LONG = 90  # seconds; an alert of the fleet takes a renewal and an audit
LIMIT_MS = 15000  # of what takes milliseconds, or a second
KINDS = {'ahead by 11 s': 11, 'back by 1 s': -1, 'back by 11 s': -11}
WHAT = ('alert in the log', 'alert_command told', 'first refusal',
        'alert in /fleet')


def now_ms():
    return time.time() * 1000


class Pager:
    """A command that notes when it was told, and of what."""

    def __init__(self, directory, name):
        self.file = '%s/%s.told' % (directory, name)
        program = self.file[:-5] + '.sh'
        with open(program, 'w') as f:
            f.write('#!/bin/sh\nexec >>"$1"\n'
                    'unset LD_PRELOAD  # the clock of its host\n'
                    'date +%s%3N\ncat\n')
        os.chmod(program, 0o700)
        self.command = [program, self.file]

    def told(self, state, since_ms):
        """When it was told that clock_step is so, since then; None: not."""
        if not os.path.exists(self.file):
            return None
        with open(self.file) as f:
            lines = f.read().split('\n')[:-1]
        for ms, doc in zip(lines[::2], lines[1::2]):
            doc = json.loads(doc)
            if (doc['kind'], doc['state']) == ('clock_step', state) \
                    and int(ms) >= since_ms:
                return int(ms)
        return None


class Fleet:
    """Three hosts of a realm; each tells a program of its own."""

    def __init__(self, lab, number):
        self.realm = lab.realm()
        self.hosts, self.pagers, self.loads = [], [], []
        for i in range(3):
            self.pagers.append(Pager(lab.dir, 'pager%d-%d' % (number, i)))
            self.hosts.append(lab.host(self.realm, conf=dict(
                CONF, alert_command=self.pagers[-1].command)).start())
        self.lab = lab
        self.figures = {kind: [] for kind in KINDS}

    def ready(self):
        for host in self.hosts:
            host.serving(30).wait_status(lambda d: d['peers'] == 2, 30,
                                         'two peers')
            # what is in a cache may be handed out for as long as its ttl
            self.loads.append(self.lab.load(host, rate=500, timeout=20,
                                            ttl=20).takes(10))
        wait.until(lambda: self.skewed() is False, LONG, 'a summary')

    def skewed(self):
        """Does fleet_skew stand?  None: there is no summary."""
        try:
            with self.realm.server.client() as zoo:
                data, _ = zoo.get(self.realm.path + '/fleet')
        except NoNode:
            return None
        return data and 'fleet_skew' in [a['kind'] for a in
                                         json.loads(data)['alerts']]

    def refused(self, load, at_ms):
        bad = [e.ms for e in load.events() if e.ms >= int(at_ms)
               and e.name != 'ok']
        return bad[0] if bad else None

    def step(self, kind, turn):
        """One host's clock steps, and is set right again; ms from the step to
        each of WHAT (None: it does not come)."""
        host, load, pager = (x[turn % 3] for x in (self.hosts, self.loads,
                                                   self.pagers))
        seconds, failed = KINDS[kind], load.failed()
        lines, at_ms, seen = len(host.log()), now_ms(), [None] * 4

        def look():
            if seen[0] is None and 'alert clock_step' in host.log()[lines:]:
                seen[0] = now_ms()
            seen[1] = seen[1] or pager.told('raised', int(at_ms))
            seen[2] = seen[2] or self.refused(load, at_ms)
            return None not in seen[:3 if seconds < 0 else 2]
        host.clock.step(seconds)
        wait.until(look, LIMIT_MS / 1000, lambda: '%s: %s\n%s' % (
            kind, seen, host.tail()), every=0.005)
        if seconds < 0:
            wait.until(self.skewed, LONG, 'an alert of the fleet', 0.02)
            seen[3] = now_ms()
        else:  # the old time goes on, and so do IDs
            load.takes(500)
            assert load.failed() == failed, host.tail()
            assert not self.skewed()
        host.clock.set(0)
        load.takes(20, 30)
        wait.until(lambda: pager.told('cleared', at_ms), LONG, host.tail)
        self.figures[kind].append([x and max(0, x - at_ms) for x in seen])

    def right_again(self):
        wait.until(lambda: self.skewed() is False, LONG, 'it is over')

    def run(self):
        for turn in range(ROUNDS):
            for kind in KINDS:
                self.step(kind, turn)
                self.right_again()
        return self.figures


@pytest.mark.real_time
def test_from_step_to_alert_and_refusal(lab):
    """Each step is told in the log, by alert_command, and, where the host's
    time moves, by the auditor; one back refuses, one ahead does not."""
    fleets = [Fleet(lab, n) for n in range(FLEETS)]
    for fleet in fleets:  # not in the pool: a child ends with its thread
        fleet.ready()
    with concurrent.futures.ThreadPoolExecutor(FLEETS) as pool:
        figures = list(pool.map(Fleet.run, fleets))
    print('\n%d steps of each kind; p50 and max in ms' % (FLEETS * ROUNDS))
    print('| step | %s |' % ' | '.join(WHAT))
    for kind in KINDS:
        columns = zip(*[row for f in figures for row in f[kind]])
        print('| %s | %s |' % (kind, ' | '.join(
            'none' if None in column else '%d, %d' % (
                statistics.median(column), max(column))
            for column in columns)))
    for fleet in fleets:
        workers = [h.worker() for h in fleet.hosts]
        for load in fleet.loads:
            load.stop()
        check(fleet.loads, workers=numbers(workers))
