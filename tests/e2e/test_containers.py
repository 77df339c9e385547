# SPDX-License-Identifier: Apache-2.0
"""What firnd(8) says of containers: mounts, users, process IDs and clocks of
other namespaces, as the kernel makes them.

Where the tests may not make namespaces (they run in a container themselves),
a hard link to the socket stands for its bind mount, as both hold the inode,
and the nobody user for one without a number here.
"""
import ctypes
import json
import os
import re
import shutil
import subprocess
import tempfile

import pytest

from firnlab import wait
from firnlab.build import (AGAIN, AWAY, SOURCE, Result, clean_env, firn,
                           program)
from firnlab.process import Process
from test_access import FLAGS, WIRE_NOT_ALLOWED, Client, alone, child, greet

CLONE_NEWUSER = 0x10000000
HOST_BASE = 100000  # the first host user of the container's
NOBODY = 65534  # /proc/sys/kernel/overflowuid


def may(*flags):
    return subprocess.run(['unshare', *flags, 'true'], stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


@pytest.fixture
def den(bare_lab):
    """A lab whose files other users may reach."""
    assert os.geteuid() == 0, 'namespaces and other users need root'
    bare_lab.dir = tempfile.mkdtemp(prefix='firn-e2e-', dir='/tmp')
    os.chmod(bare_lab.dir, 0o755)
    return bare_lab


# ---- mounts --------------------------------------------------------------------

class Pod:
    """A mount namespace with a directory or the socket bound into it, to be
    read only."""

    def __init__(self, lab, name, source):
        self.at = '%s/%s' % (lab.dir, name)
        self.real = may('-m')
        if os.path.isdir(source):
            os.mkdir(self.at)
            self.socket = self.at + '/firn.sock'
        else:
            self.socket = self.at
        if self.real:
            if not os.path.isdir(source):
                open(self.at, 'w').close()
            self.process = Process(
                ['unshare', '-m', '--propagation', 'private', 'sh', '-c',
                 'mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" && '
                 'exec sleep 600', 'sh', source, self.at], self.at + '.log')
            wait.until(self._bound, 20, self.process.text)
        elif os.path.isdir(source):
            os.rmdir(self.at)
            os.symlink(source, self.at)
        else:
            os.link(source, self.at)

    def _bound(self):
        assert self.process.running(), self.process.text()
        with open('/proc/%d/mountinfo' % self.process.pid) as f:
            return any(line.split()[4] == self.at
                       and line.split()[5].startswith('ro') for line in f)

    def firn(self, *words, status=0):
        enter = ['nsenter', '-m', '-t', str(self.process.pid)] \
            if self.real else []
        argv = enter + [program('firn'), *words, '--socket', self.socket]
        result = Result(argv, subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            stdin=subprocess.DEVNULL, env=clean_env(), timeout=120))
        assert result.status == status, repr(result)
        return result

    def end(self):
        if self.real:
            self.process.kill()


@pytest.mark.short
def test_mount_the_directory_and_not_the_socket(den):
    """The next agent makes another socket: a new name in the directory, and
    not in what was bound before.  The directory may come first, too."""
    run = den.dir + '/run'
    os.mkdir(run)
    agent = den.agent('default', hosts='127.0.0.1:1', conf={
        'worker_source': 'static', 'static_worker': 7})
    agent.socket = run + '/firn.sock'
    pods = [Pod(den, 'directory', run)]
    pods[0].firn('next', '--timeout', '100', status=AWAY)
    agent.up(20, '--first-use')
    pods.append(Pod(den, 'socket', agent.socket))
    for pod in pods:
        pod.firn('next')
    inode = os.stat(agent.socket).st_ino
    for end in (agent.end, agent.kill):
        end()
        agent.up()
        pods[0].firn('next')
        words = pods[1].firn('next', '--timeout', '500', status=AWAY).err
        assert pods[1].socket in words, words
    assert not os.path.samestat(os.stat(agent.socket), os.stat(
        pods[1].at)) or pods[1].real
    print('inode %d, then %d; real namespaces: %s'
          % (inode, os.stat(agent.socket).st_ino, pods[0].real))
    for pod in pods:
        pod.end()


# ---- users ---------------------------------------------------------------------

def in_container(what, uid):
    """Runs what() as this user of a user namespace whose user 0 is the host's
    HOST_BASE."""
    asks, told = os.pipe()
    mapped, maps = os.pipe()

    def inside():
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.unshare(CLONE_NEWUSER) == 0, os.strerror(
            ctypes.get_errno())
        os.write(told, b'%d\n' % os.getpid())
        assert os.read(mapped, 1) == b'+'
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        return what()
    join = child(inside)
    os.close(told)
    os.close(mapped)
    pid = os.read(asks, 16)
    if pid:  # else it says why with join()
        for name in ('uid_map', 'gid_map'):
            with open('/proc/%d/%s' % (int(pid), name), 'w') as f:
                f.write('0 %d 65536\n' % HOST_BASE)
        os.write(maps, b'+')
    os.close(asks)
    os.close(maps)
    return join()


def first_reply(path):
    return lambda: Client(path).ask()


@pytest.mark.short
def test_a_user_of_a_container_is_the_hosts_number(den):
    """An agent on the host sees the host's number of a user, not the one that
    the container shows."""
    agent = alone(den, allow_uids=[HOST_BASE + 5])
    if may('-U'):
        good, bad = [in_container(first_reply(agent.socket), uid)
                     for uid in (5, 6)]
    else:
        good, bad = [child(first_reply(agent.socket), HOST_BASE + uid)()
                     for uid in (5, 6)]
    assert good.status == 0 and len(good.ids) == 1, good
    assert bad.status == WIRE_NOT_ALLOWED, bad
    assert 'uid %d' % (HOST_BASE + 6) in bad.words, bad


@pytest.mark.short
@pytest.mark.parametrize('uids', ((2001,), (2001, NOBODY)))
def test_an_agent_in_a_container_sees_others_as_nobody(den, uids):
    """A user without a number in the agent's user namespace is 65534, a
    process without one in its PID namespace 0."""
    real = may('-U', '-r', '-p', '-f')
    agent = den.agent('default', hosts='127.0.0.1:1', conf={
        'socket_mode': '0666', 'allow_uids': list(uids)})
    if real:
        agent.launcher = ['unshare', '-U', '-r', '-p', '-f', '--kill-child']
    agent.up(20, *FLAGS)
    try:
        reply, ended = greet(agent.socket, 2001 if real else NOBODY)
        if NOBODY in uids:
            assert reply.status == 0 and len(reply.ids) == 1, reply
        else:
            assert reply.status == WIRE_NOT_ALLOWED and ended, reply
            assert 'uid %d' % NOBODY in reply.words, reply
        if real:
            wait.until(lambda: re.search(r'\bpid 0\b', agent.log()), 10,
                       agent.tail)
    finally:
        if real:
            agent.process.kill()  # unshare passes no other signal on


# ---- boot clocks ---------------------------------------------------------------

@pytest.mark.short
def test_a_boot_clock_of_its_own(den):
    """Behind the agent's it does no harm; ahead of it every batch looks too
    old, and the words say so."""
    agent = alone(den)
    if not may('-T'):
        firn('next', '--socket', agent.socket)  # the node's: all is well
        return

    def take(ahead, status):
        argv = ['unshare', '-T', '--boottime', str(ahead), program('firn'),
                'next', '--socket', agent.socket, '--timeout', '500']
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, env=clean_env(),
                              stdin=subprocess.DEVNULL, timeout=120)
        assert done.returncode == status, repr(Result(argv, done))
        return done.stderr
    with open('/proc/uptime') as f:
        up = int(float(f.read().split()[0]))
    take(-min(up // 2, 1000), 0)
    words = take(100000, AGAIN)
    assert 'too old' in words, words


# ---- the example -----------------------------------------------------------------

def test_the_example_for_kubernetes():
    """It says what firnd(8) says; and is YAML, as far as that can be told."""
    with open(SOURCE + '/contrib/kubernetes/daemonset.yaml') as f:
        text = f.read()
    assert '\t' not in text
    for words in ('kind: DaemonSet', 'path: /run/firn,',
                  'mountPath: /run/firn\n', 'supplementalGroups:'):
        assert words in text, words
    assert not re.search(r'ath: */run/firn/', text), 'the socket is mounted'
    try:
        import yaml
    except ImportError:
        return
    docs = list(yaml.safe_load_all(text))
    assert [d['kind'] for d in docs] == ['ConfigMap', 'DaemonSet']
    conf = json.loads(docs[0]['data']['firnd.json'])
    path = tempfile.mkdtemp(prefix='firn-e2e-', dir='/tmp')
    try:
        with open(path + '/firnd.json', 'w') as f:
            json.dump(conf, f)
        subprocess.run([program('firnd'), '--config', path + '/firnd.json',
                        '--check-config'], check=True, env=clean_env(),
                       stdout=subprocess.DEVNULL)
    finally:
        shutil.rmtree(path)
