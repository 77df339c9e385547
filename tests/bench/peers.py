# SPDX-License-Identifier: Apache-2.0
"""The servers that are measured beside firn, each private and by its pid."""
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess

from firnlab import wait
from firnlab.process import Process, SETPRIV

UUIDD = '/run/uuidd/request'  # libuuid knows no other path


def answers(path):
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(path)
        except OSError:
            return False
    return True


class Peer:
    """start() is None, or why it cannot be measured."""

    def __init__(self, directory):
        self.dir = directory
        self.process = None

    def launch(self, argv, socket_path):
        self.process = Process(argv, self.dir + '.log')
        wait.until(lambda: answers(socket_path) or not self.process.running(),
                   20, 'a socket at ' + socket_path)
        if not self.process.running():
            return 'does not start: ' + self.process.text()[-300:]
        return None

    def end(self, number=signal.SIGTERM):
        if self.process is not None and self.process.running():
            self.process.signal(number)
            self.process.wait(20)


class Redis(Peer):
    name = 'Redis'

    def start(self):
        if not shutil.which('redis-server'):
            return 'not installed'
        os.makedirs(self.dir)
        self.socket = self.dir + '/redis.sock'
        return self.launch(
            ['redis-server', '--port', '0', '--unixsocket', self.socket,
             '--save', '', '--appendonly', 'no', '--dir', self.dir],
            self.socket)


class Postgres(Peer):
    name = 'PostgreSQL'

    def start(self):
        found = shutil.which('initdb') or next(
            iter(sorted(glob.glob('/usr/lib/postgresql/*/bin/initdb'))), None)
        if not found:
            return 'not installed'
        found = os.path.dirname(os.path.realpath(found))
        os.makedirs(self.dir)
        plain = []
        if os.geteuid() == 0:  # it refuses to run as root
            if not SETPRIV:
                return 'no setpriv'
            nobody = pwd.getpwnam('nobody')
            os.chown(self.dir, nobody.pw_uid, nobody.pw_gid)
            plain = [SETPRIV, '--reuid', 'nobody', '--regid',
                     str(nobody.pw_gid), '--clear-groups',
                     '--pdeathsig', 'KILL']
        made = subprocess.run(
            plain + [found + '/initdb', '-D', self.dir + '/data', '-A',
                     'trust', '-U', 'bench', '--no-sync'],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd='/', text=True)
        if made.returncode != 0:
            return 'initdb fails: ' + made.stdout[-300:]
        self.socket = self.dir + '/.s.PGSQL.5432'
        why = self.launch(
            plain + [found + '/postgres', '-D', self.dir + '/data',
                     '-k', self.dir, '-c', 'listen_addresses='], self.socket)
        if why is None:
            wait.until(lambda: 'ready to accept' in self.process.text(), 20,
                       'PostgreSQL is ready')
        return why

    def end(self):
        super().end(signal.SIGINT)  # its quick way


class Uuidd(Peer):
    name = 'uuidd'
    made = None

    def start(self):
        if answers(UUIDD):
            return None  # the machine's own
        if not shutil.which('uuidd'):
            return 'not installed'
        if os.geteuid() != 0:
            return 'does not run, and only root can start it'
        if not os.path.isdir(os.path.dirname(UUIDD)):
            os.mkdir(os.path.dirname(UUIDD))
            self.made = os.path.dirname(UUIDD)
        why = self.launch(['uuidd', '-F', '-P', '-T', '0', '-s', UUIDD], UUIDD)
        if why is None and subprocess.run(
                ['uuidd', '-t', '-s', UUIDD], stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL).returncode != 0:
            return 'does not answer'
        return why

    def end(self):
        super().end()
        if self.process is not None and os.path.exists(UUIDD):
            os.unlink(UUIDD)
        if self.made:
            os.rmdir(self.made)
