# SPDX-License-Identifier: Apache-2.0
"""A small ZooKeeper client, so that tests see and change nodes directly.

One request at a time over one blocking socket.  It keeps no session alive: a
connection left alone for long is opened again before the next request, so
that nothing in the tests depends on pings.
"""
import collections
import socket
import struct
import time

CREATE, DELETE, EXISTS, GET, SET, SYNC = 1, 2, 3, 4, 5, 9
GET_ACL, SET_ACL, AUTH = 6, 7, 100
CHILDREN2, CREATE2, CLOSE = 12, 15, -11
EPHEMERAL, SEQUENTIAL = 1, 2

OPERATIONS = {
    1: 'create', 2: 'delete', 3: 'exists', 4: 'get', 5: 'set', 6: 'getacl',
    8: 'list', 9: 'sync', 11: 'ping', 12: 'list', 14: 'multi', 15: 'create',
    19: 'create', 21: 'create', -11: 'close', 101: 'setwatches',
}
NO_NODE, BAD_VERSION, NODE_EXISTS, NOT_EMPTY = -101, -103, -110, -111
READ, WRITE, MAY_ALL = 1, 2, 31
NO_AUTH = -102


def acl(allowed):
    """Anybody may do these (a sum of bits)."""
    return (struct.pack('>ii', 1, allowed) + b'\0\0\0\5world'
            + b'\0\0\0\6anyone')


OPEN_ACL = acl(MAY_ALL)

Stat = collections.namedtuple('Stat', 'czxid mzxid ctime mtime version '
                              'cversion aversion owner length children pzxid')
STAT = struct.Struct('>qqqqiiiqiiq')


class ZooError(Exception):
    def __init__(self, code, what):
        super().__init__('%s: error %d' % (what, code))
        self.code = code


class NoNode(ZooError):
    pass


class BadVersion(ZooError):
    pass


class NodeExists(ZooError):
    pass


KINDS = {NO_NODE: NoNode, BAD_VERSION: BadVersion, NODE_EXISTS: NodeExists}


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack('>i', len(raw)) + raw


def take_text(raw, at):
    (n,) = struct.unpack_from('>i', raw, at)
    return raw[at + 4:at + 4 + max(n, 0)], at + 4 + max(n, 0)


class Zoo:
    """A client of one server at 127.0.0.1:port."""

    def __init__(self, port, timeout=10.0):
        self.port = port
        self.timeout = timeout
        self.sock = None
        self.used = 0.0
        self.xid = 0
        self.shown = []  # "user:password", of digest

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- connection -------------------------------------------------------

    def _frame(self):
        (n,) = struct.unpack('>i', self._exactly(4))
        return self._exactly(n)

    def _exactly(self, n):
        parts = bytearray()
        while len(parts) < n:
            part = self.sock.recv(n - len(parts))
            if not part:
                raise ConnectionError('ZooKeeper closed the connection')
            parts += part
        return bytes(parts)

    def _open(self):
        self.sock = socket.create_connection(('127.0.0.1', self.port),
                                             self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = struct.pack('>iqiq', 0, 0, 30000, 0) + text(b'\0' * 16) + b'\0'
        self.sock.sendall(struct.pack('>i', len(body)) + body)
        self._frame()
        for user_password in self.shown:
            body = (struct.pack('>iii', -4, AUTH, 0) + text('digest')
                    + text(user_password))
            self.sock.sendall(struct.pack('>i', len(body)) + body)
            self._frame()

    def close(self):
        if self.sock is None:
            return
        try:
            self.sock.sendall(struct.pack('>iii', 8, self.xid + 1, CLOSE))
            self._frame()
        except OSError:
            pass
        self.drop()

    def drop(self):
        if self.sock is not None:
            self.sock.close()
        self.sock = None

    def _call(self, operation, body, what):
        if time.monotonic() - self.used > 8:
            self.drop()
        try:
            if self.sock is None:
                self._open()
            self.xid += 1
            body = struct.pack('>ii', self.xid, operation) + body
            self.sock.sendall(struct.pack('>i', len(body)) + body)
            while True:
                reply = self._frame()
                xid, _, error = struct.unpack_from('>iqi', reply)
                if xid == self.xid:
                    break
        except OSError:
            self.drop()
            raise
        self.used = time.monotonic()
        if error != 0:
            raise KINDS.get(error, ZooError)(error, what)
        return reply[16:]

    # -- operations -------------------------------------------------------

    def get(self, path):
        """(data, Stat)"""
        raw = self._call(GET, text(path) + b'\0', path)
        data, at = take_text(raw, 0)
        return data, Stat._make(STAT.unpack_from(raw, at))

    def exists(self, path):
        """Stat, or None"""
        try:
            raw = self._call(EXISTS, text(path) + b'\0', path)
        except NoNode:
            return None
        return Stat._make(STAT.unpack_from(raw))

    def set(self, path, data, version=-1):
        raw = self._call(SET, text(path) + text(data)
                         + struct.pack('>i', version), path)
        return Stat._make(STAT.unpack_from(raw))

    def create(self, path, data=b'', flags=0):
        """The path as it is called in the end."""
        raw = self._call(CREATE, text(path) + text(data) + OPEN_ACL
                         + struct.pack('>i', flags), path)
        return take_text(raw, 0)[0].decode()

    def allow(self, path, allowed):
        """Changes the node's access list: whatever its data, its version
        stays."""
        raw = self._call(SET_ACL, text(path) + acl(allowed)
                         + struct.pack('>i', -1), path)
        return Stat._make(STAT.unpack_from(raw))

    def get_acl(self, path):
        """[(scheme, id, rights)]"""
        raw = self._call(GET_ACL, text(path), path)
        (n,) = struct.unpack_from('>i', raw)
        found, at = [], 4
        for _ in range(n):
            (rights,) = struct.unpack_from('>i', raw, at)
            scheme, at = take_text(raw, at + 4)
            who, at = take_text(raw, at)
            found.append((scheme.decode(), who.decode(), rights))
        return found

    def auth(self, user_password):
        """Shown on this connection, and on those after it."""
        self.shown.append(user_password)
        self.drop()

    def create_many(self, paths, data=b''):
        """Pipelined, a hundred at a time."""
        self.exists('/')  # a fresh connection
        for at in range(0, len(paths), 100):
            part = paths[at:at + 100]
            frames = []
            for path in part:
                self.xid += 1
                body = (struct.pack('>ii', self.xid, CREATE) + text(path)
                        + text(data) + OPEN_ACL + struct.pack('>i', 0))
                frames.append(struct.pack('>i', len(body)) + body)
            self.sock.sendall(b''.join(frames))
            for path in part:
                _, _, error = struct.unpack_from('>iqi', self._frame())
                if error != 0:
                    raise KINDS.get(error, ZooError)(error, path)
        self.used = time.monotonic()

    def delete(self, path, version=-1):
        self._call(DELETE, text(path) + struct.pack('>i', version), path)

    def sync(self, path='/'):
        self._call(SYNC, text(path), path)

    def list(self, path):
        """(names, Stat)"""
        raw = self._call(CHILDREN2, text(path) + b'\0', path)
        (n,) = struct.unpack_from('>i', raw)
        names, at = [], 4
        for _ in range(n):
            name, at = take_text(raw, at)
            names.append(name.decode())
        return sorted(names), Stat._make(STAT.unpack_from(raw, at))

    def delete_tree(self, path):
        for name in self.list(path)[0]:
            self.delete_tree(path + '/' + name)
        self.delete(path)
