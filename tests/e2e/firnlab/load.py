# SPDX-License-Identifier: Apache-2.0
"""Applications under load (idload) and the judge of what they got (idcheck)."""
import collections
import glob
import json
import os
import signal
import struct
import subprocess

from . import wait
from .build import clean_env, program, run
from .process import Process

Event = collections.namedtuple('Event', 'ms name why')
SLOT = struct.Struct('=%dQ' % (6 + 16 + 1))


class Load:
    """One run of idload against one agent."""

    def __init__(self, directory, name, socket, **options):
        self.prefix = '%s/%s' % (directory, name)
        self.socket = socket
        argv = [program('idload'), '--socket', socket, '--out', self.prefix]
        # a caller's patience, unless the test is about it
        options.setdefault('timeout', 10000)
        for key, value in options.items():
            argv += ['--' + key, str(value)]
        self.process = Process(argv, self.prefix + '.log', env=clean_env(),
                               stdout=subprocess.PIPE)
        self.result = None

    # -- while it runs ----------------------------------------------------

    def progress(self):
        """(IDs, failed calls, wall time in ms of the last good call)"""
        try:
            with open(self.prefix + '.progress', 'rb') as f:
                raw = f.read()
        except FileNotFoundError:
            return 0, 0, 0
        ids = failed = last = 0
        for slot in SLOT.iter_unpack(raw[:len(raw) // SLOT.size * SLOT.size]):
            ids += slot[0]
            failed += slot[2]
            last = max(last, slot[4])
        return ids, failed, last // 1000000

    def ids(self):
        return self.progress()[0]

    def failed(self):
        return self.progress()[1]

    def takes(self, more=1, seconds=20):
        """Waits until so many more IDs were taken."""
        goal = self.ids() + more
        wait.until(lambda: self.ids() >= goal, seconds,
                   lambda: '%d more IDs: has %s, events %s' % (
                       more, self.progress(), self.events()[-4:]))
        return self

    # -- its end ----------------------------------------------------------

    def finish(self, seconds=120):
        """Waits for its end and returns its summary."""
        if self.result is None:
            try:
                out, _ = self.process.popen.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                raise wait.Late('idload still runs after %g s: %s'
                                % (seconds, self.progress()))
            status = self.process.wait(1)
            assert status == 0, 'idload exits with %d\n%s' % (
                status, self.process.text())
            self.result = json.loads(out)
        return self.result

    def stop(self, seconds=30):
        self.process.signal(signal.SIGTERM)
        return self.finish(seconds)

    def files(self):
        return sorted(glob.glob(self.prefix + '.*.ids')
                      + glob.glob(self.prefix + '.*.pairs'))

    def events(self):
        """Each change of outcome of all threads, in the order of time."""
        events = []
        for name in glob.glob(self.prefix + '.*.events'):
            with open(name) as f:
                for line in f:
                    ms, event, why = line.rstrip('\n').split(' ', 2)
                    events.append(Event(int(ms), event, why))
        return sorted(events)

    def remove(self):
        for name in self.files():
            os.unlink(name)


def check(loads, **options):
    """Judges all files of these loads together; returns idcheck's summary.

    Options are idcheck's: workers='1-3', ttl=1000, layout=..., not_after=...
    """
    args = []
    for key, value in options.items():
        args += ['--' + key.replace('_', '-'), value]
    files = [name for load in loads for name in load.files()]
    assert files, 'nothing to check'
    result = run('idcheck', *args, *files, status=None, seconds=300)
    assert result.status == 0, 'idcheck: status %d\n%s%s' % (
        result.status, result.out, result.err)
    return result.json


def numbers(workers):
    """[3, 1] -> '1,3', as idcheck takes them."""
    return ','.join(str(w) for w in sorted(set(workers)))
