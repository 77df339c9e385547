# SPDX-License-Identifier: Apache-2.0
"""contrib/PROTOCOL.md: its examples are what a real agent says, a client that
was written from it holds what libfirn holds, and old and new get along.
"""
import collections
import contextlib
import glob
import json
import os
import re
import signal
import socket
import struct
import sys
import threading
import time

import pytest

from firnlab import wait
from firnlab.build import SOURCE, clean_env
from firnlab.load import check, numbers
from firnlab.process import Process
from firnlab.pyfirn import Client, Refused, WrongRealm

NOWHERE = '127.0.0.1:1'  # never asked
HEADER = struct.Struct('<BBHIQ')
EPOCH_MS = 1735689600000
Field = collections.namedtuple('Field', 'name raw value varies')


# ---- the page ---------------------------------------------------------------

def read_frames():
    """{(kind, name): [Field]} of all frames in the page."""
    frames, fields = {}, None
    with open(SOURCE + '/contrib/PROTOCOL.md') as f:
        for line in f.read().splitlines():
            head = re.match(r'```frame (request|reply) (\S+)$', line)
            if head:
                fields = frames.setdefault(head.groups(), [])
                assert not fields, '%s is there twice' % line
            elif line.startswith('```'):
                fields = None
            elif fields is not None:
                raw, _, said = line.partition('  ')
                raw, said = bytes.fromhex(raw), said.strip()
                if said:
                    name, value = said.split(' = ', 1)
                    fields.append(Field(name.lstrip('~'), raw, value,
                                        name.startswith('~')))
                else:
                    fields[-1] = fields[-1]._replace(raw=fields[-1].raw + raw)
    return frames


FRAMES = read_frames()
# Which of them is replayed where.
PLAIN = ['contract', 'batch', 'batch-two-runs', 'status', 'clock-back',
         'bad-version', 'closed-count-zero', 'closed-count-over',
         'closed-flags', 'closed-reserved', 'closed-type', 'closed-after']
SONYFLAKE = ['contract-sonyflake', 'batch-stride']
LOST = ['state-lost', 'contract-no-worker']
NO_REALM = ['no-realm', 'no-realm-contract']
STATES = ['before-epoch', 'epoch-ended', 'draining', 'too-many-clients',
          'no-claim', 'window-spent', 'not-allowed', 'over-rate']


def test_every_example_is_replayed():
    names = PLAIN + SONYFLAKE + LOST + NO_REALM + STATES
    assert sorted(names) == sorted({name for _, name in FRAMES})


def raw(kind, name):
    return b''.join(f.raw for f in FRAMES[kind, name])


# ---- a connection, byte by byte ---------------------------------------------

class Raw:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def receive(self, n):
        data = b''
        while len(data) < n:
            try:
                part = self.sock.recv(n - len(data))
            except ConnectionResetError:  # it had not read all
                part = b''
            if not part:
                break
            data += part
        return data

    def frame(self):
        """One whole reply; b'' at the connection's end."""
        header = self.receive(16)
        return header + self.receive(HEADER.unpack(header)[3]) if header \
            else b''


def without_figures(text):
    return re.sub(rb'\d[\d.:]*', b'#', text)


def compare(name, got):
    """Is this reply the page's, but for what varies?"""
    at, steps = 0, []
    for field in FRAMES['reply', name]:
        size = len(field.raw)
        if field.name == 'text' and field.varies:
            size = len(got) - at
        here = got[at:at + size]
        said = '%s: %s is %s, the page has %s\n%s' % (
            name, field.name, here.hex(' '), field.raw.hex(' '), got)
        if not field.varies:
            assert here == field.raw, said
        elif field.name == 'text' and name == 'status':
            has, page = json.loads(here), json.loads(field.raw)
            assert all(has[k] == v for k, v in page.items()), said
        elif field.name == 'text':
            assert without_figures(here) == without_figures(field.raw), said
        elif field.name in ('length', 'text_length'):
            head = at + size + 8 if field.name == 'length' else at + size
            assert int.from_bytes(here, 'little') == len(got) - head, said
        elif field.name == 'first':
            steps.append([int.from_bytes(b, 'little')
                          for b in (here, field.raw)])
        elif field.name == 'retry_after_ms':
            assert 0 < int.from_bytes(here, 'little') < 60000, said
        else:
            assert field.name == 'boot_ns', said
            assert abs(time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                       - int.from_bytes(here, 'little')) < 60e9, said
        at += size
    assert at == len(got), name
    for has, page in steps:  # worker and sequence; then the runs' distance
        low = (1 << (24 if 'stride' in name else 22)) - 1
        assert has & low == page & low, (name, has)
        assert has - steps[0][0] == page - steps[0][1], (name, steps)


def replay(path, name, conn=None):
    with conn or Raw(path) as c:
        if ('request', name) in FRAMES:
            c.send(raw('request', name))
        if ('reply', name) in FRAMES:
            compare(name, c.frame())
        if name.startswith(('closed-', 'bad-', 'too-many', 'not-')):
            assert c.frame() == b'', name + ': not closed'


def replay_batch(path, name):
    """From a tick's beginning; under load another one may come in between."""
    for attempt in range(50):
        time.sleep(0.03)  # past what was borrowed
        try:
            return replay(path, name)
        except AssertionError:
            if attempt == 49:
                raise


# ---- the examples -----------------------------------------------------------

def static(lab, worker=5, **conf):
    return lab.agent('default', hosts=NOWHERE, conf=dict(
        conf, worker_source='static', static_worker=worker))


def replay_all(agent, names):
    for name in names:
        if name.startswith('batch'):
            replay_batch(agent.socket, name)
        else:
            replay(agent.socket, name)


@pytest.mark.short
def test_an_agent_that_serves(bare_lab):
    agent = static(bare_lab).up(20, '--first-use')
    replay_all(agent, PLAIN)
    lines = [x for x in agent.log().splitlines() if 'closed' in x]
    assert len([x for x in lines if 'bad request' in x]) == 6, lines
    replay(agent.socket, 'contract')  # the others were not harmed


@pytest.mark.short
def test_the_sequence_above_the_worker(bare_lab):
    agent = static(bare_lab, 500, layout='sonyflake').up(20, '--first-use')
    replay_all(agent, SONYFLAKE)


@pytest.mark.short
def test_replies_come_in_the_order_of_requests(bare_lab):
    """All at once, in pieces that end anywhere; the cookies come back."""
    agent = static(bare_lab).up(20, '--first-use')
    names = ['contract', 'batch', 'clock-back', 'status', 'batch'] * 20
    data = b''.join(raw('request', n) for n in names)
    with Raw(agent.socket) as c:
        sender = threading.Thread(target=lambda: [
            c.send(data[i:i + 7]) for i in range(0, len(data), 7)])
        sender.start()
        for name in names:
            got, page = c.frame(), raw('reply', name)
            assert got[:4] + got[8:16] == page[:4] + page[8:16], name
        sender.join()


@pytest.mark.short
def test_states_without_zookeeper(bare_lab):
    lost = static(bare_lab).start()
    lost.refuses('state_lost', 20)
    replay_all(lost, LOST)
    for name, bits, epoch in (
            ('before-epoch', '41/10/12', '2100-01-01T00:00:00Z'),
            ('epoch-ended', '30/10/12', '2020-01-01T00:00:00Z')):
        agent = static(bare_lab, layout=bits, epoch=epoch)
        agent.start('--first-use').refuses(name.replace('-', '_'), 20)
        replay(agent.socket, name)


@pytest.mark.short
def test_one_client_too_many(bare_lab):
    agent = static(bare_lab, max_clients=1).up(20, '--first-use')
    with Raw(agent.socket) as c:
        c.send(raw('request', 'contract'))
        compare('contract', c.frame())
        replay(agent.socket, 'too-many-clients')
        # a client waits as it was told, and is served
        other = Client(agent.socket, timeout=60)
        got = []
        thread = threading.Thread(target=lambda: got.append(other.next()))
        thread.start()
        wait.until(lambda: other.refusals, 30, 'it is refused')
    thread.join()
    assert got and {(r.status, r.type) for r in other.refusals} == {(66, 0)}
    other.close()


@contextlib.contextmanager
def as_nobody(directory):
    """Root's tests as another user, who reaches sockets by a relative path."""
    before = os.getcwd()
    os.chmod(directory, 0o755)
    os.chdir(directory)
    try:
        os.seteuid(65534)
        yield
    finally:
        os.seteuid(0)
        os.chdir(before)


@pytest.mark.short
def test_a_user_that_is_not_on_the_list(bare_lab):
    agent = static(bare_lab, allow_uids=str(os.getuid() + 4242),
                   socket_mode='0666').up(20, '--first-use')
    if os.geteuid() != 0:  # nobody else is at hand, and the own user may
        assert Client(agent.socket, timeout=30).next()
        return
    with as_nobody(bare_lab.dir):
        path = os.path.basename(agent.socket)
        replay(path, 'not-allowed')
        client = Client(path, timeout=1000)
        with pytest.raises(Refused, match='not_allowed'):
            client.next()
    assert [(r.status, r.type) for r in client.refusals] == [(65, 0)]


@pytest.mark.short
def test_a_user_over_its_rate(bare_lab):
    """The batch is refused and the connection stays; a client waits."""
    agent = static(bare_lab, max_ids_per_second=1).up(20, '--first-use')
    with Raw(agent.socket) as c:
        for _ in range(1000):  # what the bucket holds, and what drips into it
            c.send(raw('request', 'over-rate'))
            got = c.frame()
            if HEADER.unpack(got[:16])[2] != 0:
                break
        compare('over-rate', got)
        c.send(raw('request', 'contract'))
        compare('contract', c.frame())
    client = Client(agent.socket, timeout=60)
    assert client.next() and client.verified
    assert {(r.status, r.type) for r in client.refusals} <= {(66, 1)}
    client.close()


@pytest.mark.short
def test_draining(bare_lab):
    """More is asked than fits, since nothing is read; then the agent stops:
    what it has read by then is refused."""
    agent = static(bare_lab, drain_ms=60000).up(20, '--first-use')
    with Raw(agent.socket) as c:
        c.sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                c.sock.send(raw('request', 'draining') * 16)
        agent.process.signal(signal.SIGTERM)
        wait.until(lambda: 'drains' in agent.log(), 30, 'it drains')
        c.sock.settimeout(60)
        frames = [c.frame()]
        while frames[-1]:
            frames.append(c.frame())
        compare('draining', frames[-2])
    assert agent.process.wait(60) == 0


def test_states_with_zookeeper(lab):
    homeless = lab.agent('nosuch').start()
    homeless.wait_status(lambda d: 'has not been found' in d['words'], 30,
                         'it has looked')
    replay_all(homeless, NO_REALM)
    realm = lab.realm('--first', '--workers', '3-3')
    proxy = lab.proxy()
    first = lab.agent(realm, hosts=proxy.hosts, conf={
        'session_ms': 2000, 'renew_ms': 400, 'op_deadline_ms': 300,
        'reserve_ms': 1200}).up(30)
    second = lab.agent(realm).start()
    second.wait_status(lambda d: d['connected'], 30, 'it has looked')
    replay(second.socket, 'no-claim')
    proxy.hole()
    first.refuses('window_spent', 60)
    replay(first.socket, 'window-spent')
    proxy.heal()


# ---- a client that was written from the page --------------------------------

class PyLoad:
    """Several Python processes; what idcheck wants of a load."""

    def __init__(self, lab, agent, processes):
        self.prefix = lab.dir + '/pyload'
        self.process = Process(
            [sys.executable, SOURCE + '/tests/e2e/pyload.py', agent.socket,
             self.prefix, str(processes)], self.prefix + '.log',
            env=clean_env())

    def files(self):
        return sorted(glob.glob(self.prefix + '.*.ids'))

    def takes(self, threads, bytes_more=4000):
        """Waits until each thread has taken so much more."""
        def sizes():
            return {n: os.path.getsize(n) for n in self.files()
                    if not n.endswith('.0.ids')}
        wait.until(lambda: len(sizes()) == threads, 60, 'threads')
        before = sizes()
        wait.until(lambda: all(s >= before[n] + bytes_more for n, s in
                               sizes().items()), 60,
                   lambda: 'IDs: %s\n%s' % (sizes(), self.process.text()))

    def stop(self):
        self.process.signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.process.text()


def test_python_and_c_on_one_agent(lab):
    """Threads, forked children and libfirn side by side, over a kill, a clean
    restart and an agent that stands still: each ID once, rising per thread."""
    realm = lab.realm()
    agent = lab.agent(realm).up(30)
    workers = {agent.worker()}
    c_load = lab.load(agent, threads=2, rate=500, timeout=60000)
    py_load = PyLoad(lab, agent, 2)
    py_load.takes(6)
    for end in (agent.kill, agent.end):
        end()
        agent.up(60)
        workers.add(agent.worker())
        py_load.takes(6)
        c_load.takes(100, 60)
    agent.freeze()
    agent.thaw()
    py_load.takes(6)
    py_load.stop()
    c_load.stop()
    told = check([py_load, c_load], workers=numbers(workers))
    python = sum(os.path.getsize(n) for n in py_load.files()) // 8
    print('%d IDs, %d of them by Python' % (told['ids'], python))
    assert told['ids'] > python > 3000


@pytest.mark.short
def test_old_ids_are_dropped(bare_lab):
    agent = static(bare_lab).up(20, '--first-use')
    client = Client(agent.socket, timeout=30, ttl_ms=100, batch=1000)
    first = client.next()
    highest = client.after
    assert highest >= first + 999
    wait.until(lambda: time.monotonic() > client.until[0], 10, 'they are old')
    assert client.next() > highest
    client.close()


@pytest.mark.short
def test_another_realm_is_none(bare_lab):
    agent = static(bare_lab).up(20, '--first-use')
    client = Client(agent.socket, realm='elsewhere', timeout=30)
    with pytest.raises(WrongRealm):
        client.next()
    client = Client(agent.socket, realm='default', timeout=30)
    client.next()
    agent.end()
    # the same name, another layout
    agent.conf['layout'] = '41/11/11'
    agent.forget()
    agent.up(20, '--first-use')
    with pytest.raises(WrongRealm):
        client.next()


@pytest.mark.short
def test_what_no_wait_mends_comes_at_once(bare_lab):
    agent = static(bare_lab).start()
    agent.refuses('state_lost', 20)
    client = Client(agent.socket, timeout=1000)
    with pytest.raises(Refused, match='state_lost: there is no state file'):
        client.next()
    assert [r.status for r in client.refusals] == [5]
    client.close()


def test_a_refusal_is_waited_out(lab):
    name = lab.unused_name()
    agent = lab.agent(name).start()
    wait.until(agent.status, 30, 'it answers')
    short = Client(agent.socket, timeout=0.5)
    with pytest.raises(Refused, match='no_realm'):
        short.next()
    assert {r.status for r in short.refusals} == {1}
    long, got = Client(agent.socket, timeout=60), []
    thread = threading.Thread(target=lambda: got.append(long.next()))
    thread.start()
    wait.until(lambda: len(long.refusals) > 1, 30, 'it tries again')
    lab.realm(name=name)
    thread.join()
    assert got
    long.close()
    short.close()


def test_nobody_there():
    client = Client('/nonexistent/firn.sock', timeout=0.3)
    began = time.monotonic()
    with pytest.raises(FileNotFoundError):
        client.next()
    assert time.monotonic() - began > 0.1  # it has tried for a while


# ---- old and new ------------------------------------------------------------

@pytest.mark.short
def test_a_newer_client_falls_back(bare_lab):
    agent = static(bare_lab).up(20, '--first-use')
    newer = Client(agent.socket, timeout=30, versions=(3, 2, 1))
    ids = [newer.next() for _ in range(3)]
    assert ids == sorted(set(ids)) and newer.version == 1
    assert [(r.status, r.version) for r in newer.refusals] == [(64, 1)]
    agent.end()
    agent.up(20)
    assert newer.next() > ids[-1]  # it began with its highest again
    assert len(newer.refusals) == 2
    newer.close()
    only = Client(agent.socket, timeout=30, versions=(2,))
    with pytest.raises(Refused, match='speaks version 1'):
        only.next()


def refusal(status, text, type_=1, version=1, retry_ms=0, cookie=0):
    body = struct.pack('<II', retry_ms, len(text)) + text.encode()
    return HEADER.pack(version, type_, status, len(body), cookie) + body


class FakeAgent:
    """An agent of another version, as far as libfirn can see it.  `say` is
    asked for each request: bytes, or None for the reply of an agent of today;
    `end` says whether to close after it."""

    def __init__(self, path, say=lambda agent, type_, cookie: None):
        self.path, self.say = path, say
        self.connections = self.batches = 0
        self.flags = self.reserved = 0
        self.uuid, self.end = b'\1' * 16, False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    def _run(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(sock,),
                             daemon=True).start()

    def _serve(self, sock):
        with sock:
            try:
                while True:
                    request = sock.recv(32, socket.MSG_WAITALL)
                    if len(request) < 32:
                        return
                    _, type_, _, count, cookie, after, _ = struct.unpack(
                        '<BBHIQQQ', request)
                    self.batches += type_ == 1
                    sock.sendall(self.say(self, type_, cookie)
                                 or self.today(type_, cookie, count, after))
                    if self.end:
                        return
            except OSError:
                return

    def today(self, type_, cookie, count, after):
        if type_ == 2:
            body = struct.pack(
                '<16s4BIIIqQ16s64s', self.uuid, 41, 10, 12, 0, self.flags, 1,
                self.reserved, EPOCH_MS, 1, b'firn', b'default')
        else:
            tick = max(int(time.time() * 1000) - EPOCH_MS, (after >> 22) + 1)
            body = struct.pack(
                '<QIIQQII', time.clock_gettime_ns(time.CLOCK_BOOTTIME), 1000,
                1, tick << 22 | 1 << 12, 1, min(count, 4096), self.reserved)
        return HEADER.pack(1, type_, 0, len(body), cookie) + body


def outcomes(lab, fake, changes=1, count=1):
    """What libfirn says of it: so many changes of outcome, {name: why}."""
    load = lab.load(fake.path, count=count, timeout=30000)
    wait.until(lambda: len(load.events()) >= changes, 60, 'an outcome')
    if load.process.running():
        load.process.signal(signal.SIGTERM)
    load.finish()
    return {e.name: e.why for e in load.events()}


@pytest.mark.short
def test_libfirn_with_an_agent_that_has_left_it_behind(bare_lab):
    def say(agent, type_, cookie):
        agent.end = True
        return refusal(64, 'this agent speaks versions 2 to 3', 0, version=3)
    with FakeAgent(bare_lab.dir + '/fake', say) as fake:
        told = outcomes(bare_lab, fake)
    assert list(told) == ['FIRN_EPROTO'], told
    assert 'the agent speaks version 3, this library 1' \
        in told['FIRN_EPROTO'], told


@pytest.mark.short
def test_libfirn_with_a_refusal_that_it_does_not_know(bare_lab):
    """Returned with its words; retried if told when; from 64 on, too."""
    for status in (40, 90):
        def say(agent, type_, cookie, status=status):
            agent.end = status >= 64 and type_ == 1
            return refusal(status, 'snowed_in: 3 m of snow', type_,
                           cookie=cookie) if type_ == 1 else None
        with FakeAgent('%s/no%d' % (bare_lab.dir, status), say) as fake:
            told = outcomes(bare_lab, fake)
        assert list(told) == ['FIRN_EREFUSED'], told
        assert 'snowed_in: 3 m of snow' in told['FIRN_EREFUSED'], told

    def later(agent, type_, cookie):
        return refusal(40, 'snowed_in: wait', 1, retry_ms=20, cookie=cookie) \
            if type_ == 1 and agent.batches < 4 else None
    with FakeAgent(bare_lab.dir + '/later', later) as fake:
        assert list(outcomes(bare_lab, fake)) == ['ok']
        assert (fake.batches, fake.connections) == (4, 1)


@pytest.mark.short
def test_libfirn_with_a_layout_that_it_does_not_know(bare_lab):
    with FakeAgent(bare_lab.dir + '/fake') as fake:
        fake.flags = 2
        told = outcomes(bare_lab, fake)
        assert list(told) == ['FIRN_EPROTO'], told
        assert 'a layout that this library does not know' \
            in told['FIRN_EPROTO'], told
        assert fake.connections >= 2  # it has tried once more
        client = Client(fake.path, timeout=30)
        with pytest.raises(Exception, match='an unknown layout'):
            client.next()


@pytest.mark.short
def test_reserved_bytes_of_replies_are_not_looked_at(bare_lab):
    with FakeAgent(bare_lab.dir + '/fake') as fake:
        fake.reserved = 0xdeadbeef
        assert list(outcomes(bare_lab, fake)) == ['ok']
        client = Client(fake.path, timeout=30)
        assert client.next()
        client.close()


@pytest.mark.short
def test_libfirn_and_another_uuid_on_the_next_connection(bare_lab):
    def say(agent, type_, cookie):
        agent.end = type_ == 1
        if agent.connections > 1:
            agent.uuid = b'\2' * 16
    with FakeAgent(bare_lab.dir + '/fake', say) as fake:
        told = outcomes(bare_lab, fake, changes=2, count=3)
    assert sorted(told) == ['FIRN_EREALM', 'ok'], told
    assert 'another one than this handle has known' in told['FIRN_EREALM']
