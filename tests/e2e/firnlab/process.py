# SPDX-License-Identifier: Apache-2.0
"""Child processes that never outlive the tests.

Invariant: every process started here is in `alive` until it was waited for;
end_all() ends the rest, each by its own pid.  The kernel ends them too, if
the tests themselves are killed (parent-death signal).
"""
import atexit
import os
import re
import shutil
import signal
import socket
import subprocess

from . import wait

alive = set()
SETPRIV = shutil.which('setpriv')
# What a sanitizer, an assertion or the C library prints when it finds a fault.
FAULT = re.compile(rb'ERROR: AddressSanitizer|ERROR: LeakSanitizer|'
                   rb'WARNING: ThreadSanitizer|runtime error:|'
                   rb'Assertion .* failed|assertion failed|'
                   rb'\*\*\* (?:stack|buffer) |'
                   rb'free\(\): |malloc\(\): |double free')


def free_port():
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Process:
    """One child with its log file."""

    def __init__(self, argv, log, env=None, cwd=None, stdout=None,
                 pass_fds=()):
        full = dict(os.environ)
        full.update(env or {})
        if SETPRIV:
            argv = [SETPRIV, '--pdeathsig', 'KILL'] + list(argv)
        self.log = str(log)
        with open(self.log, 'ab') as out:
            self.popen = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=stdout or out,
                stderr=out, env=full, cwd=cwd, start_new_session=True,
                pass_fds=pass_fds)
        self.pid = self.popen.pid
        self.stopped = False
        alive.add(self)

    def running(self):
        return self.status() is None

    def status(self):
        status = self.popen.poll()
        if status is not None:
            alive.discard(self)
        return status

    def signal(self, number):
        if self.running():
            os.kill(self.pid, number)

    def stop(self):
        self.signal(signal.SIGSTOP)
        self.stopped = True

        def state():
            with open('/proc/%d/stat' % self.pid) as f:
                return f.read().rsplit(')', 1)[1].split()[0] == 'T'
        wait.until(state, 5, 'process %d stopped' % self.pid, every=0.005)

    def cont(self):
        self.signal(signal.SIGCONT)
        self.stopped = False

    def wait(self, seconds):
        """The exit status; Late if it goes on for longer."""
        seconds *= wait.PATIENCE
        try:
            status = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise wait.Late('process %d still runs after %g s (log %s)'
                            % (self.pid, seconds, self.log))
        alive.discard(self)
        return status

    def kill(self):
        self.signal(signal.SIGKILL)
        self.wait(10)

    def text(self):
        with open(self.log, 'rb') as f:
            return f.read().decode(errors='replace')

    def fault(self):
        """The line of a sanitizer's report or a failed assertion, or None."""
        with open(self.log, 'rb') as f:
            for line in f:
                if FAULT.search(line):
                    return line.decode(errors='replace').strip()
        return None


def end_all():
    for process in list(alive):
        try:
            process.kill()
        except (OSError, AssertionError):
            pass


atexit.register(end_all)
