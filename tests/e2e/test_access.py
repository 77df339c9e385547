# SPDX-License-Identifier: Apache-2.0
"""Who may take IDs and how many, as the kernel says who they are; and what of
that, and of the rest, a SIGHUP changes without a failed call.

The clients are children of the test itself under other users, so that nothing
depends on which files those may read.
"""
import json
import os
import pickle
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import time

import pytest

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import NOT_ALLOWED, clean_env, firn, program
from firnlab.load import check
from firnlab.process import SETPRIV, Process

REQUEST = struct.Struct('<BBHIQQQ')
HEADER = struct.Struct('<BBHIQ')
RUN = struct.Struct('<QQII')
BATCH, STATUS_REQUEST = 1, 3
OK_STATUS, WIRE_NOT_ALLOWED, WIRE_TOO_MANY = 0, 65, 66
PATIENCE = 20


# ---- a client in plain bytes --------------------------------------------------

class Reply:
    def __init__(self, header, body):
        _, self.type, self.status, _, self.cookie = header
        self.ids = []
        self.ttl_ms = self.retry_ms = self.words = None
        if self.status:
            self.retry_ms, n = struct.unpack_from('<II', body)
            self.words = body[8:8 + n].decode()
        elif self.type == BATCH:
            _, self.ttl_ms, runs = struct.unpack_from('<QII', body)
            for i in range(runs):
                first, stride, count, _ = RUN.unpack_from(
                    body, 16 + i * RUN.size)
                self.ids += range(first, first + stride * count, stride)

    def __repr__(self):
        return 'status %d, cookie %d, %d IDs, words %r' % (
            self.status, self.cookie, len(self.ids), self.words)


class Client:
    """One connection; it asks for nothing by itself."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(path)
        self.cookie = 1000

    def _bytes(self, n):
        data = b''
        while len(data) < n:
            piece = self.sock.recv(n - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def reply(self):
        header = HEADER.unpack(self._bytes(HEADER.size))
        return Reply(header, self._bytes(header[3]))

    def ask(self, count=1, after=0):
        self.cookie += 1
        try:
            self.sock.sendall(REQUEST.pack(1, BATCH, 0, count, self.cookie,
                                           after, 0))
        except BrokenPipeError:
            pass  # refused on arrival: the words are there to be read
        return self.reply()

    def ended(self):
        try:
            return self.sock.recv(1) == b''
        except ConnectionResetError:
            return True

    def close(self):
        self.sock.close()


def child(what, uid=0, gid=0, groups=()):
    """Starts what() as this user; returns a function that waits for it."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(r)
            os.setgroups(groups)
            os.setgid(gid)
            os.setuid(uid)
            try:
                value = ('value', what())
            except BaseException as e:  # told to the parent, whatever it is
                value = ('error', repr(e))
            os.write(w, pickle.dumps(value))
        finally:
            os._exit(0)
    os.close(w)

    def join():
        with os.fdopen(r, 'rb') as f:
            data = f.read()
        os.waitpid(pid, 0)
        kind, value = pickle.loads(data)
        assert kind == 'value', value
        return value
    return join


def greet(path, uid, gid=9999, groups=()):
    """What this user gets: its first reply, and whether that was the end."""
    def talk():
        client = Client(path)
        reply = client.ask()
        return reply, reply.status != OK_STATUS and client.ended()
    return child(talk, uid, gid, groups)()


# ---- an agent that needs no ZooKeeper, where any user can reach it ----------------

@pytest.fixture
def den(bare_lab):
    """A lab whose files other users may reach."""
    assert os.geteuid() == 0, 'clients of other users need root'
    bare_lab.dir = tempfile.mkdtemp(prefix='firn-e2e-', dir='/tmp')
    os.chmod(bare_lab.dir, 0o755)
    return bare_lab


FLAGS = ('--static-worker', '7', '--first-use')


def alone(lab, **conf):
    agent = lab.agent('default', hosts='127.0.0.1:1',
                      conf=dict({'socket_mode': '0666'}, **conf))
    return agent.up(PATIENCE, *FLAGS)


FIFO = '(a pipe in place of the file)'
RELOADED = re.compile(r'reload: .*(?:need a restart|nothing changed)$', re.M)


def reload(agent, text=None, **changes):
    """Writes the file anew, sends SIGHUP, waits until it was looked at."""
    before = len(RELOADED.findall(agent.log()))
    if text is None:
        with open(agent.base + '.json') as f:
            conf = json.load(f)
        conf.update(changes)
        text = json.dumps(conf, indent=1)
    os.unlink(agent.base + '.json')
    if text == FIFO:
        os.mkfifo(agent.base + '.json')
    else:
        with open(agent.base + '.json', 'w') as f:
            f.write(text)
    agent.process.signal(signal.SIGHUP)
    wait.until(lambda: len(RELOADED.findall(agent.log())) > before, PATIENCE,
               lambda: 'the file read again\n' + agent.tail())


# ---- who is let in --------------------------------------------------------------

def test_only_whom_the_lists_hold(den):
    agent = alone(den, allow_uids=[2001, 'daemon'], allow_gids=[3001])
    daemon = subprocess.check_output(['id', '-u', 'daemon'], text=True)
    many = tuple(range(5000, 5300))
    for why, uid, gid, groups in (
            ('by user', 2001, 9999, ()),
            ('by a name', int(daemon), 9999, ()),
            ('by group', 2002, 3001, ()),
            ('by another group', 2003, 9999, (4000, 3001)),
            ('by the last of many groups', 2003, 9999, many + (6001, 3001)),
            ('root', 0, 0, ())):
        reply, _ = greet(agent.socket, uid, gid, groups)
        assert reply.status == OK_STATUS and len(reply.ids) == 1, (why, reply)
    for uid, gid, groups in ((2004, 9999, ()), (2005, 2001, ()),
                             (3001, 9999, ()), (2004, 9999, many)):
        reply, ended = greet(agent.socket, uid, gid, groups)
        assert reply.status == WIRE_NOT_ALLOWED and reply.cookie == 0, reply
        assert ended, 'refused, and still connected'
        for word in ('uid %d,' % uid, 'gid %d ' % gid, 'allow_uids or '
                     'allow_gids'):
            assert word in reply.words, reply
    assert agent.status()['denied'] == '4'
    shown = firn('status', '--socket', agent.socket).out
    assert re.search('^denied +4 connections', shown, re.M), shown
    assert 'limited' not in shown and 'reloads' not in shown
    # once for each user, however often it comes
    lines = [x for x in agent.log().splitlines() if 'not_allowed' in x]
    assert len(lines) == 3, lines
    assert int(agent.status()['clients']) <= 1


def test_the_command_says_77(den):
    agent = alone(den, allow_gids=[3001])
    copy = den.dir + '/firn'  # the build may be where only root looks
    shutil.copy(program('firn'), copy)
    os.chmod(copy, 0o755)

    def status(**who):
        return subprocess.run([copy, 'status', '--socket', agent.socket],
                              env=clean_env(), capture_output=True, text=True,
                              timeout=60, cwd='/', **who)
    done = status(user=2004, group=2004, extra_groups=[])
    assert done.returncode == NOT_ALLOWED, done
    assert 'uid 2004' in done.stderr and 'allow_gids' in done.stderr, done
    assert done.stderr.count('not_allowed') == 1, 'said once'
    assert len(done.stderr.splitlines()) == 1
    assert status(user=2004, group=2004,
                  extra_groups=[3001]).returncode == 0
    assert status().returncode == 0


def test_an_agent_that_is_no_root(den):
    """Its own user is let in, and root."""
    home = den.dir + '/home'
    os.mkdir(home)
    os.chown(home, 2100, 2100)
    copy = den.dir + '/firnd'
    shutil.copy(program('firnd'), copy)
    os.chmod(copy, 0o755)
    agent = den.agent('default', hosts='127.0.0.1:1')
    agent.socket = home + '/s'
    with open(den.dir + '/conf', 'w') as f:
        json.dump({'allow_uids': [2001], 'socket_mode': '0666'}, f)
    assert SETPRIV, 'setpriv is missing'
    agent.process = Process(
        [SETPRIV, '--reuid', '2100', '--regid', '2100', '--clear-groups',
         copy, '--config', den.dir + '/conf', '--socket', agent.socket]
        + list(FLAGS), agent.base + '.log', env=clean_env())
    agent.serving()
    st = os.lstat(agent.socket)
    assert (st.st_uid, st.st_gid) == (2100, 2100)
    for uid, status in ((2100, OK_STATUS), (0, OK_STATUS), (2001, OK_STATUS),
                        (2002, WIRE_NOT_ALLOWED)):
        assert greet(agent.socket, uid)[0].status == status, uid
    assert agent.status()['state'] == 'serving'


def test_a_shorter_list_lets_go(den):
    """A reload is for those who are connected, too."""
    agent = alone(den)
    parent, kid = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)

    def stay():
        client = Client(agent.socket)
        first = client.ask()
        kid.send(b'in')
        kid.settimeout(PATIENCE)
        kid.recv(8)
        second = client.ask()
        kid.send(b'still in')
        gone = client.ended()
        return first.status, second.status, gone, Client(agent.socket).ask()
    join = child(stay, 2001, 2001)
    parent.settimeout(PATIENCE)
    parent.recv(8)
    reload(agent, allow_uids=[2001])
    parent.send(b'on')
    parent.recv(8)
    reload(agent, allow_uids=[2002])
    first, second, gone, last = join()
    assert (first, second, gone) == (OK_STATUS, OK_STATUS, True)
    assert last.status == WIRE_NOT_ALLOWED
    assert 'allow_uids' in last.words and 'allow_gids' not in last.words
    assert greet(agent.socket, 2002)[0].status == OK_STATUS
    parent.close()
    kid.close()


@pytest.mark.parametrize('key,words', [
    ('allow_uids', 'there is no user "no-such-name"'),
    ('allow_gids', 'there is no group "no-such-name"')])
def test_an_unknown_name_is_78(den, key, words):
    agent = den.agent('default', hosts='127.0.0.1:1',
                      conf={key: [0, 'no-such-name']})
    agent.may_fail = True
    agent.start(*FLAGS)
    assert agent.process.wait(PATIENCE) == 78
    assert words in agent.log()
    assert re.search(r'a0\.json: line \d+, column \d+: %s' % key, agent.log())
    assert not os.path.exists(agent.socket)


# ---- how many -------------------------------------------------------------------

def test_the_rate_is_each_users_own(den):
    rate = 2000
    agent = alone(den, max_ids_per_second=rate)
    seconds = 2.0

    def greedy():
        """Two connections of one user, as fast as they are told to come."""
        start = time.monotonic()
        clients = [Client(agent.socket) for _ in range(2)]
        ids, refused, words, stay = 0, 0, '', 0
        while time.monotonic() < start + seconds or not stay:
            for client in clients:
                reply = client.ask(100000)
                if reply.status == OK_STATUS:
                    ids += len(reply.ids)
                    stay += refused > 0
                    continue
                assert reply.status == WIRE_TOO_MANY, reply
                assert reply.cookie == client.cookie, 'of this request'
                assert 1 <= reply.retry_ms <= 1000, reply.retry_ms
                refused, words = refused + 1, reply.words
                time.sleep(reply.retry_ms / 1000)
        return ids, refused, words, stay, time.monotonic() - start

    def modest():
        client, ids, after = Client(agent.socket), 0, 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            reply = client.ask(10, after)
            assert reply.status == OK_STATUS, reply
            ids += len(reply.ids)
            after = reply.ids[-1]
            time.sleep(0.02)  # 500 a second: a quarter of what it may
        return ids
    joins = [child(greedy, 2001, 2001), child(modest, 2002, 2002)]
    ids, refused, words, stay, took = joins[0]()
    calm = joins[1]()
    print('greedy: %d IDs in %.2f s, %d refusals; modest: %d IDs' % (
        ids, took, refused, calm))
    assert rate <= ids <= rate + rate * took
    assert refused > 0 and stay > 0, 'the connection stays'
    assert words == 'too_many: uid 2001 is over max_ids_per_second 2000'
    assert calm > 0
    doc = agent.status()
    assert int(doc['limited']) == refused
    assert agent.log().count('over max_ids_per_second') == 1
    # and without a limit
    reload(agent, max_ids_per_second=0)
    assert len(greet_many(agent.socket, 2001, 3 * rate)) == 3 * rate


def greet_many(path, uid, n):
    def take():
        client, ids = Client(path), []
        while len(ids) < n:
            reply = client.ask(n - len(ids), ids[-1] if ids else 0)
            if reply.status == OK_STATUS:
                ids += reply.ids
        return ids
    return child(take, uid, uid)()


def test_the_library_keeps_within_its_rate(den):
    """libfirn comes back when it is told to: slower, without an error."""
    agent = alone(den, max_ids_per_second=1000)
    start = time.monotonic()
    out = firn('next', '-n', 2500, '--socket', agent.socket, '--timeout',
               60000).out.split()
    took = time.monotonic() - start
    print('2500 IDs at 1000 a second took %.2f s' % took)
    assert len(set(out)) == 2500
    assert took >= 1.4, 'the first 1000 at once, the others at the rate'


def test_max_clients(den):
    agent = alone(den, max_clients=3)
    held = [Client(agent.socket) for _ in range(2)]
    assert all(c.ask().status == OK_STATUS for c in held)
    held.append(Client(agent.socket))
    assert held[2].ask().status == OK_STATUS
    late = Client(agent.socket)
    reply = late.ask()
    assert reply.status == WIRE_TOO_MANY and reply.cookie == 0
    assert 'max_clients is 3' in reply.words and late.ended()
    held.pop().close()
    wait.until(lambda: greet(agent.socket, 0)[0].status == OK_STATUS, PATIENCE,
               'one left')
    # Lowered it closes nobody.
    reload(agent, max_clients=1)
    assert all(c.ask().status == OK_STATUS for c in held)
    reply = Client(agent.socket).ask()
    assert reply.status == WIRE_TOO_MANY and 'max_clients is 1' in reply.words
    for client in held:
        client.close()
    wait.until(lambda: greet(agent.socket, 0)[0].status == OK_STATUS, PATIENCE,
               'both left')
    reload(agent, max_clients=3)


# ---- what a reload changes --------------------------------------------------------

def sequences(client, n):
    """Of single IDs, each in a tick of its own."""
    found = []
    for _ in range(n):
        found.append(client.ask().ids[0] & 4095)
        time.sleep(0.003)
    return found


def test_each_key_takes_effect(den):
    agent = alone(den, log_level='info', max_lead_ms=0)
    client = Client(agent.socket)
    # ttl_ms
    assert client.ask().ttl_ms == 1000
    reload(agent, ttl_ms=77)
    assert client.ask().ttl_ms == 77
    # log_level
    assert ' open' not in agent.log()
    reload(agent, log_level='debug')
    greet(agent.socket, 0)
    assert ' open' in agent.log()
    # sequence_start
    assert 0 in sequences(client, 20)
    reload(agent, sequence_start='random')
    assert any(s > 0 for s in sequences(client, 20))
    reload(agent, sequence_start='zero')
    # max_lead_ms: without a lead a request gets the present tick, at most
    assert len(client.ask(100000).ids) <= 4096
    reload(agent, max_lead_ms=5000)
    # (While another is connected, the command that asked for the status say,
    # a grant is cut to its share of one tick.)
    wait.until(lambda: len(client.ask(100000).ids) > 3 * 4096, PATIENCE,
               'more than the ticks there are')
    # several in one go, and a line for each
    reload(agent, max_clients=50, ttl_ms=1000, drain_ms=1234)
    log = agent.log()
    for words in ('ttl_ms: 77 -> 1000', 'max_clients: 10000 -> 50',
                  'drain_ms: 2000 -> 1234', 'log_level: "info" -> "debug"'):
        assert 'reload: ' + words in log, words
    doc = agent.status()
    assert doc['config_reloads'] == '6'
    assert doc['config_reload_failures'] == '0'
    client.close()


def test_a_drain_is_as_long_as_the_reload_says(den):
    agent = alone(den, drain_ms=600000)
    stuck = Client(agent.socket)
    stuck.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    request = REQUEST.pack(1, STATUS_REQUEST, 0, 0, 1, 0, 0)
    stuck.sock.settimeout(0.5)
    try:  # replies that nobody reads, until no more is taken
        while True:
            stuck.sock.sendall(request * 100)
    except TimeoutError:
        pass
    reload(agent, drain_ms=10)
    agent.end(PATIENCE)  # and not in ten minutes
    assert 'did not end within 10 ms' in agent.log()
    stuck.close()


def test_what_needs_a_restart_is_named(den):
    agent = alone(den)
    reload(agent, renew_ms=4000, realm='other', socket_mode='0600',
           ttl_ms=500)
    log = agent.log()
    for words in ('renew_ms: 3000 -> 4000', 'realm: "default" -> "other"',
                  'socket_mode: "0666" -> "0600"'):
        assert 'reload: %s needs a restart' % words in log, words
    assert 'reload: ttl_ms: 1000 -> 500\n' in log
    assert '1 key changed, 3 need a restart' in log
    assert agent.status()['realm'] == 'default'
    assert Client(agent.socket).ask().ttl_ms == 500
    # Flags win, now as then: worker ID 7, whatever the file says.
    reload(agent, static_worker=9)
    assert agent.worker() == 7 and 'static_worker:' not in agent.log()


def test_reloads_good_and_bad_under_load(den):
    """Nothing fails, and what is bad changes nothing and is counted."""
    agent = alone(den)
    load = den.load(agent, threads=4, rate=1000)
    load.takes(100)
    with open(agent.base + '.json') as f:
        good = json.load(f)
    bad = (
        ('{\n "ttl_ms": 5,\n "realm" "x"}', 'line 3, column 10'),
        (json.dumps(dict(good, ttl_ms=0)), 'column'),
        (json.dumps(dict(good, ttl_ms=7, tttl=0)), 'tttl'),
        (json.dumps(dict(good, ttl_ms=7, allow_uids=['no-such'])),
         'there is no user "no-such"'),
        # good after a restart, but not beside the renew_ms that stays
        (json.dumps(dict(good, ttl_ms=7, renew_ms=1000, op_deadline_ms=500,
                         reserve_ms=4000)), 'reserve_ms'),
        ('', 'empty'),
        # nobody writes to it, and nobody waits for that
        (FIFO, 'not a regular file'),
    )
    client = Client(agent.socket)
    for i, (text, words) in enumerate(bad):
        reload(agent, text)
        assert agent.status()['config_reload_failures'] == str(i + 1), words
        lines = [x for x in agent.log().splitlines() if 'reload: ' in x
                 and 'nothing changed' in x]
        assert len(lines) == i + 1 and words in lines[-1], lines
        assert client.ask().ttl_ms == 1000 + i
        reload(agent, json.dumps(dict(good, ttl_ms=1001 + i)))
        assert agent.status()['config_reloads'] == str(i + 1)
        assert client.ask().ttl_ms == 1001 + i
        load.takes(100)
    assert load.failed() == 0, load.events()
    assert load.stop()['failed'] == 0, load.events()
    check([load], workers='7')


def test_reload_of_window_and_skew(lab):
    """With ZooKeeper: a longer reserve is in force with the next renewal, a
    shorter one lowers nothing; and what skew refuses."""
    realm = lab.realm()
    one = lab.agent(realm, conf=dict(QUICK)).up()
    two = lab.host(realm, offset=2.0,
                   conf=dict(QUICK, skew_warn_ms=9000)).up()
    one.reserves(15000)
    reload(one, reserve_ms=50000)
    one.reserves(40000)
    mark = int(one.status()['mark_ms'])
    reload(one, reserve_ms=3000)
    renewed = one.wait_status(lambda d: d['window_left_ms'] < 45000, PATIENCE,
                              'some renewals later')
    assert int(renewed['mark_ms']) >= mark
    # Two hosts: the one that is off by the server's clock is the one.
    two.wait_status(lambda d: d['skew_ms'] is not None
                    and abs(d['skew_ms']) > 1000, PATIENCE, 'measured')
    assert two.state() == 'serving' and 'skew_warn:' not in two.log()
    reload(two, skew_warn_ms=400)
    wait.until(lambda: 'alert skew_warn:' in two.log(), PATIENCE,
               'a warning with the next judgement')
    reload(two, skew_refuse_ms=1000)
    two.refuses('clock_skew', PATIENCE)
    reload(two, skew_warn_ms=5000, skew_refuse_ms=10000)
    two.wait_status(lambda d: d['state'] == 'serving', PATIENCE,
                    'within the limit again')
    # What would keep it from starting again is told now.
    reload(one, zookeeper='zk1:99999')
    assert 'reload: zookeeper: "zk1:99999": ' in one.log()
    doc = one.status()
    assert doc['state'] == 'serving' and doc['config_reload_failures'] == '1'


# ---- the socket's name ------------------------------------------------------------

def test_a_socket_that_was_removed_comes_back(den):
    agent = alone(den, socket_mode='0606')
    load = den.load(agent, threads=2, rate=500)
    load.takes(100)
    client = Client(agent.socket)
    before = os.lstat(agent.socket).st_ino
    for names in ((agent.socket,), (agent.socket, agent.socket + '.lock')):
        for name in names:
            os.unlink(name)
        wait.until(lambda: os.path.exists(agent.socket), PATIENCE,
                   'a socket again')
        st = os.lstat(agent.socket)
        assert stat.S_IMODE(st.st_mode) == 0o606 and stat.S_ISSOCK(st.st_mode)
        assert greet(agent.socket, 2001)[0].status == OK_STATUS
    assert client.ask().status == OK_STATUS, 'who was connected stays so'
    assert load.failed() == 0, load.events()
    # A second one is told so, before and after.
    second = den.agent('default', hosts='127.0.0.1:1')
    second.socket, second.may_fail = agent.socket, True
    second.start(*FLAGS)
    assert second.process.wait(PATIENCE) == 1
    assert '(pid %d)' % agent.process.pid in second.log()
    # Something else in its place is somebody's: left alone, said once.
    os.unlink(agent.socket)
    with open(agent.socket + '.tmp', 'w') as f:
        f.write('mine')
    os.rename(agent.socket + '.tmp', agent.socket)
    wait.until(lambda: 'left alone' in agent.log(), PATIENCE, 'a line')
    load.stop()
    client.close()
    agent.end()
    with open(agent.socket) as f:
        assert f.read() == 'mine'
    assert agent.log().count('left alone') <= 2  # while it ran; at its end
    os.unlink(agent.socket)
    assert before


def test_a_socket_that_was_left_is_taken_over(den):
    agent = alone(den)
    agent.kill()
    assert stat.S_ISSOCK(os.lstat(agent.socket).st_mode)
    agent.up(PATIENCE, *FLAGS[:2])
    assert greet(agent.socket, 2001)[0].status == OK_STATUS
