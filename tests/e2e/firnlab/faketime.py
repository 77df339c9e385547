# SPDX-License-Identifier: Apache-2.0
"""Wall clocks of single processes (libfaketime), and hosts that have one.

Invariant: only the wall clock is moved.  Monotonic and boot time stay real,
as they do on a host whose clock is set.
"""
import glob
import os
import uuid

from .agent import Agent

LIBRARY = next(iter(glob.glob('/usr/lib/*/faketime/libfaketimeMT.so.1')), None)


class Clock:
    """What one process reads as the time: its offset, in a file.  (Not with
    AddressSanitizer, which the library hangs in.)"""

    def __init__(self, path, seconds=0.0):
        # Skips nothing: a machine that cannot run the tests fails them.
        assert LIBRARY, 'no libfaketimeMT (Debian package libfaketime)'
        self.path = path + '.clock'
        self.seconds = seconds
        self.pids = []
        self.set(seconds)

    @property
    def env(self):
        return {'LD_PRELOAD': LIBRARY, 'FAKETIME_TIMESTAMP_FILE': self.path,
                'FAKETIME_NO_CACHE': '1', 'DONT_FAKE_MONOTONIC': '1',
                # else Debian's build breaks waits on the monotonic clock
                'FAKETIME_FORCE_MONOTONIC_FIX': '0'}

    def set(self, seconds, rate=None):
        """So far from the real time; once there was a rate, each time with
        one.  (An empty file would be the real time.)"""
        self.seconds = seconds
        with open(self.path + '.new', 'w') as f:
            f.write('%+.6f%s\n' % (seconds, ' x%s' % rate if rate else ''))
        os.rename(self.path + '.new', self.path)

    def step(self, seconds):
        self.set(self.seconds + seconds)

    def sweep(self):
        """What a killed process leaves behind."""
        for pid in self.pids:
            for name in ('faketime_shm_%d', 'sem.faketime_sem_%d'):
                try:
                    os.unlink('/dev/shm/' + name % pid)
                except OSError:
                    pass
        self.pids = []


class Host(Agent):
    """An agent on a host of its own: own boot ID, own wall clock."""

    def __init__(self, directory, name, hosts, realm, conf=None, offset=0.0,
                 env=None):
        self.clock = Clock('%s/%s' % (directory, name), offset)
        env = dict(env or {}, **self.clock.env)
        env['FIRN_TEST_BOOT_ID'] = str(uuid.uuid4())
        super().__init__(directory, name, hosts, realm, conf, env,
                         testing=True)

    def start(self, *flags):
        super().start(*flags)
        self.clock.pids.append(self.process.pid)
        return self
