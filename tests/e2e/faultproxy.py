# SPDX-License-Identifier: Apache-2.0
"""A loopback TCP proxy in front of ZooKeeper that fails on request.

It cuts the stream of each connection into ZooKeeper's frames, so that it can
swallow exactly the reply (or the request) of one operation on one path:

    rule = proxy.swallow('set', r'/marks\\.[^/]*/0007$', then='reset')
    rule.wait(10)

Invariant: bytes pass in order and whole frames at a time; what is not told to
fail is passed on unchanged.
"""
import collections
import heapq
import itertools
import re
import selectors
import socket
import struct
import threading
import time

from firnlab import wait
from firnlab.jute import OPERATIONS

CONNECT_FRAMES = 1  # the first frame of each direction has no xid
WITHOUT_PATH = ('ping', 'close', 'multi', 'setwatches')


class Rule:
    """Swallows the replies to matching requests, or the requests.

    then: 'reset'    the client's connection is reset at once (-4 there)
          'skip'     only this one is missing; the next reply is out of order
                     (-2 there)
          'silence'  nothing comes from the server any more on this
                     connection, which stays open (-7 there, or a deadline)
    """

    def __init__(self, operation, path, count, then, what):
        assert then in ('reset', 'skip', 'silence'), then
        assert what in ('reply', 'request'), what
        self.operation = operation
        self.path = re.compile(path)
        self.left = count
        self.then = then
        self.what = what
        self.seen = []  # (monotonic time, operation, path) of what went

    def matches(self, operation, path):
        return (self.left > 0 and operation == self.operation
                and self.path.search(path or '') is not None)

    def wait(self, seconds, count=1):
        wait.until(lambda: len(self.seen) >= count, seconds,
                   'the proxy swallowed %d of %s %s (%s)'
                   % (count, self.operation, self.path.pattern, self.seen),
                   every=0.01)


class Side:
    """One of a connection's two sockets, and what is on the way to it."""

    def __init__(self, sock):
        self.sock = sock
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.frames = 0
        self.silent = False  # nothing is read from here into the other side


class Link:
    def __init__(self, client, server):
        self.client = Side(client)
        self.server = Side(server)
        self.asked = collections.OrderedDict()  # xid -> (operation, path)
        self.swallow = {}  # xid -> rule
        self.dead = False

    def sides(self):
        return (self.client, self.server)

    def other(self, side):
        return self.server if side is self.client else self.client


def parse_request(frame):
    """(xid, operation, path) of a client's frame."""
    xid, number = struct.unpack_from('>ii', frame)
    operation = OPERATIONS.get(number, str(number))
    if operation in WITHOUT_PATH or len(frame) < 12:
        return xid, operation, None
    (n,) = struct.unpack_from('>i', frame, 8)
    return xid, operation, bytes(frame[12:12 + n]).decode(errors='replace')


class Proxy:
    """Listens on a port of its own; `port`, `hosts` say which."""

    def __init__(self, upstream):
        self.upstream = upstream
        self.lock = threading.RLock()
        self.selector = selectors.DefaultSelector()
        self.links = set()
        self.rules = []
        self.accepted = 0
        self.sessions = set()  # whose connections came through here
        self.counts = collections.Counter()  # requests seen, by operation
        self.holes = set()  # directions in which bytes vanish
        self.refusing = False
        self.delay = 0.0
        self.due = []  # heap of (time, n, link, side, frame)
        self.order = itertools.count()
        self.closing = False
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self._listen()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def hosts(self):
        return '127.0.0.1:%d' % self.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- what tests say ---------------------------------------------------

    def swallow(self, operation, path, count=1, then='reset', what='reply'):
        rule = Rule(operation, path, count, then, what)
        with self.lock:
            self.rules.append(rule)
        return rule

    def hole(self, up=True, down=True):
        """Bytes vanish; connections stay (a cut cable)."""
        with self.lock:
            self.holes = ({'up'} if up else set()) | (
                {'down'} if down else set())

    def heal(self):
        """Bytes pass again.  What fell into the hole does not come back, so
        connections that missed something are reset, as TCP would give up."""
        with self.lock:
            self.holes = set()
            self.rules = []
            self.delay = 0.0
            if self.refusing:
                self.refusing = False
                self._listen()
            for link in list(self.links):
                if link.client.silent or link.server.silent:
                    self._drop(link)

    def reset(self):
        with self.lock:
            for link in list(self.links):
                self._drop(link)

    def refuse(self):
        """No new connections, and none of those there are."""
        with self.lock:
            self.refusing = True
            self.selector.unregister(self.listener)
            self.listener.close()
            self.reset()

    def slow(self, seconds):
        """Each frame comes so much later, in each direction."""
        with self.lock:
            self.delay = seconds

    def close(self):
        self.closing = True
        self.thread.join(5)
        for link in list(self.links):
            self._drop(link)
        self.listener.close()
        self.selector.close()

    # -- the thread -------------------------------------------------------

    def _listen(self):
        if self.listener.fileno() == -1:
            self.listener = socket.socket()
            self.listener.setsockopt(socket.SOL_SOCKET,
                                     socket.SO_REUSEADDR, 1)
            self.listener.bind(('127.0.0.1', self.port))
        self.listener.listen(512)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, None)

    def _run(self):
        while not self.closing:
            events = self.selector.select(0.01)
            with self.lock:
                for key, mask in events:
                    self._event(key, mask)
                self._deliver()

    def _event(self, key, mask):
        if key.data is None:
            if not self.refusing:
                self._accept()
            return
        link, side = key.data
        if link.dead:
            return
        try:
            if mask & selectors.EVENT_WRITE:
                self._flush(link, side)
            if mask & selectors.EVENT_READ:
                self._read(link, side)
        except OSError:
            self._drop(link)

    def _accept(self):
        try:
            client, _ = self.listener.accept()
        except OSError:
            return
        self.accepted += 1
        try:
            server = socket.create_connection(
                ('127.0.0.1', self.upstream), 1)
        except OSError:
            self._kill(client)
            return
        link = Link(client, server)
        self.links.add(link)
        for side in link.sides():
            side.sock.setblocking(False)
            side.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(side.sock, selectors.EVENT_READ,
                                   (link, side))

    @staticmethod
    def _kill(sock):
        """Closes with a reset."""
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                            struct.pack('ii', 1, 0))
        except OSError:
            pass
        sock.close()

    def _drop(self, link):
        if link.dead:
            return
        link.dead = True
        self.links.discard(link)
        for side in link.sides():
            try:
                self.selector.unregister(side.sock)
            except (KeyError, ValueError):
                pass
            self._kill(side.sock)

    def _read(self, link, side):
        part = side.sock.recv(65536)
        if not part:
            self._drop(link)
            return
        way = 'up' if side is link.client else 'down'
        if way in self.holes:
            side.silent = True  # a stream with a gap: nothing more of it
        if side.silent:
            return
        side.incoming += part
        while len(side.incoming) >= 4 and not link.dead:
            (n,) = struct.unpack_from('>i', side.incoming)
            if len(side.incoming) < 4 + n:
                break
            frame = bytes(side.incoming[:4 + n])
            del side.incoming[:4 + n]
            side.frames += 1
            if self._passes(link, side, frame[4:]):
                self._send(link, link.other(side), frame)

    def _passes(self, link, side, frame):
        if side.frames <= CONNECT_FRAMES and side is link.server \
                and len(frame) >= 16:
            self.sessions.add(struct.unpack_from('>q', frame, 8)[0])
            self.sessions.discard(0)  # one that has expired
        if side.frames <= CONNECT_FRAMES or side.silent:
            return not side.silent
        if side is link.client:
            return self._request(link, frame)
        (xid,) = struct.unpack_from('>i', frame)
        if xid < 0:
            return True
        operation, path = link.asked.pop(xid, (None, None))
        rule = link.swallow.pop(xid, None)
        if rule is None:
            return True
        return self._act(link, rule, operation, path)

    def _request(self, link, frame):
        xid, operation, path = parse_request(frame)
        self.counts[operation] += 1
        if xid < 0:
            return True
        link.asked[xid] = (operation, path)
        for rule in self.rules:
            if not rule.matches(operation, path):
                continue
            rule.left -= 1
            if rule.what == 'reply':
                link.swallow[xid] = rule
                return True
            return self._act(link, rule, operation, path)
        return True

    def _act(self, link, rule, operation, path):
        """A swallowed frame: what happens to its connection."""
        rule.seen.append((time.monotonic(), operation, path))
        if rule.then == 'reset':
            self._drop(link)
        elif rule.then == 'silence':
            link.server.silent = True
        return False

    def _send(self, link, side, frame):
        if self.delay > 0 or self.due:
            heapq.heappush(self.due, (time.monotonic() + self.delay,
                                      next(self.order), link, side, frame))
            return
        side.outgoing += frame
        self._flush(link, side)

    def _deliver(self):
        while self.due and self.due[0][0] <= time.monotonic():
            _, _, link, side, frame = heapq.heappop(self.due)
            if link.dead:
                continue
            side.outgoing += frame
            try:
                self._flush(link, side)
            except OSError:
                self._drop(link)

    def _flush(self, link, side):
        try:
            while side.outgoing:
                n = side.sock.send(side.outgoing)
                del side.outgoing[:n]
        except BlockingIOError:
            pass
        events = selectors.EVENT_READ
        if side.outgoing:
            events |= selectors.EVENT_WRITE
        self.selector.modify(side.sock, events, (link, side))
