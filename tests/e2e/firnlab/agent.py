# SPDX-License-Identifier: Apache-2.0
"""firnd processes, each with a configuration file and a socket of its own."""
import json
import os
import shutil
import signal

from . import wait
from .build import clean_env, firn, program
from .process import Process

# Short times for tests that wait for an outage to pass; the ratios are those
# of the defaults.
QUICK = {'session_ms': 4000, 'renew_ms': 1000, 'op_deadline_ms': 800,
         'reserve_ms': 20000}


class Agent:
    """One agent; its files stay over restarts."""

    def __init__(self, directory, name, hosts, realm, conf=None, env=None,
                 testing=False):
        self.name = name
        self.base = '%s/%s' % (directory, name)
        self.socket = self.base + '.sock'
        self.state_dir = self.base + '.state'
        os.makedirs(self.state_dir, 0o700, exist_ok=True)
        self.conf = dict(conf or {})
        self.conf.setdefault('log_level', 'debug')
        self.hosts = hosts
        self.realm = realm
        self.env = dict(env or {})
        self.testing = testing
        self.launcher, self.pass_fds = [], ()  # what starts it, and with what
        self.process = None
        self.may_fail = False  # its exit status is the test's own affair

    # -- process ----------------------------------------------------------

    def start(self, *flags):
        """Starts it, and does not wait for anything."""
        assert self.process is None or not self.process.running()
        conf = dict(self.conf, zookeeper=self.hosts, realm=self.realm,
                    socket=self.socket, state_dir=self.state_dir)
        with open(self.base + '.json', 'w') as f:
            json.dump(conf, f, indent=1)
        self.process = Process(
            self.launcher + [
                program('firnd-test' if self.testing else 'firnd'),
                '--config', self.base + '.json'] + list(flags),
            self.base + '.log', env=clean_env(self.env),
            pass_fds=self.pass_fds)
        return self

    def up(self, seconds=20, *flags):
        """Starts it and waits until it serves."""
        self.start(*flags)
        return self.serving(seconds)

    def serving(self, seconds=20):
        seconds *= wait.PATIENCE
        result = firn('wait', '--socket', self.socket, '--timeout',
                      int(seconds * 1000), status=None, seconds=seconds + 10)
        assert result.status == 0, '%s does not serve: %r\n%s' % (
            self.name, result, self.tail())
        return self

    def kill(self):
        self.process.kill()

    def forget(self):
        """Loses its state file, as another host would not have it."""
        assert not self.process.running()
        shutil.rmtree(self.state_dir)
        os.makedirs(self.state_dir, 0o700)

    def end(self, seconds=15):
        """A clean stop."""
        if self.process.stopped:
            self.process.cont()
        self.process.signal(signal.SIGTERM)
        status = self.process.wait(seconds)
        assert status == 0, '%s exits with %d\n%s' % (
            self.name, status, self.tail())

    def freeze(self):
        self.process.stop()

    def thaw(self):
        self.process.cont()

    def log(self):
        return self.process.text()

    def tail(self, n=40):
        return '\n'.join(self.log().splitlines()[-n:])

    # -- what it says -----------------------------------------------------

    def status(self):
        """The document of `firn status`, {} while the agent does not answer."""
        result = firn('status', '--json', '--socket', self.socket,
                      status=None)
        return result.json if result.status in (0, 75) else {}

    def state(self):
        return self.status().get('state')

    def worker(self):
        """The worker ID as a number; None while there is none."""
        worker = self.status().get('worker')
        return None if worker is None else int(worker)

    def wait_status(self, condition, seconds, what):
        """The first status document for which condition(doc) holds."""
        seen = {}

        def look():
            seen['doc'] = self.status()
            return seen['doc'] if seen['doc'] and condition(
                seen['doc']) else None
        return wait.until(look, seconds, lambda: '%s: %s; last status %s\n%s'
                          % (self.name, what, seen['doc'], self.tail()), 0.1)

    def reserves(self, ms, seconds=20):
        """Waits until the first, short window was followed by one that lasts
        for longer than this."""
        self.wait_status(lambda d: (d.get('window_left_ms') or 0) > ms,
                         seconds, 'a full window')
        return self

    def refuses(self, reason, seconds):
        """Waits until it refuses for this reason (without a claim so far,
        the state is `claiming`)."""
        return self.wait_status(
            lambda d: d['state'] in ('refusing', 'claiming')
            and d['reason'] == reason, seconds, 'refuses with ' + reason)
