# SPDX-License-Identifier: Apache-2.0
"""A client in pure Python, written from contrib/PROTOCOL.md alone: it shows
that the page is enough, and shares no line with libfirn."""
import os
import random
import socket
import struct
import threading
import time

REQUEST, HEADER = struct.Struct('<BBHIQQQ'), struct.Struct('<BBHIQ')
BATCH, ASK_CONTRACT, BAD_VERSION, FINAL = 1, 2, 64, (2, 7, 11)


class NotTheProtocol(Exception):
    """Bytes that no agent of this version sends."""


class WrongRealm(Exception):
    """Another ID space than the one wanted, or than before."""


class Refused(Exception):
    def __init__(self, version, type_, status, retry_ms, text):
        super().__init__(status, text)
        self.version, self.type, self.status = version, type_, status
        self.retry_ms, self.text = retry_ms, text


def check(good, words):
    if not good:
        raise NotTheProtocol(words)


class Client:
    sock = None

    def __init__(self, path=None, realm=None, timeout=1.0, ttl_ms=1000,
                 batch=1, versions=(1,)):
        self.path = path or os.environ.get('FIRN_SOCKET') \
            or '/run/firn/firn.sock'
        self.realm, self.timeout, self.ttl_ms = realm, timeout, ttl_ms
        self.batch, self.versions, self.version = batch, versions, versions[0]
        self.after, self.known = 0, None
        self.refusals = []  # all there were, also those waited out
        self._own()
        # before a child has a second thread that could be at it, too
        os.register_at_fork(after_in_child=self._own)

    def _own(self):  # a new process keeps `after` and the contract only
        self.close()
        self.lock, self.ids = threading.Lock(), []

    def close(self):
        if self.sock:
            self.stream.close()
            self.sock.close()
        self.sock, self.verified = None, False

    def next(self):
        with self.lock:
            if not self._young():
                self._refill(time.monotonic() + self.timeout)
            return self.ids.pop()

    def _young(self):
        if self.ids and (time.monotonic() >= self.until[0]
                         or time.time() >= self.until[1]):
            self.ids = []
        return self.ids

    def _refill(self, deadline):
        pause, faults = 0.0005, 0
        while True:
            worked, wait = self.verified, 0.001
            try:
                self._ask(deadline)
                if self._young():
                    return
                error = TimeoutError('a reply was too old')
            except Refused as e:
                error, wait = e, e.retry_ms / 1000
                self.refusals.append(e)
                if e.type == 0:
                    self.close()
                lower = [v for v in self.versions
                         if v <= e.version and v < self.version]
                if e.status == BAD_VERSION and lower:
                    self.version, wait = max(lower), 0
                elif e.status in FINAL or not wait:
                    raise
            except NotTheProtocol as e:
                self.close()
                error, wait, faults = e, 0, faults + 1
                if faults > 1:
                    raise
            except PermissionError:
                raise
            except OSError as e:  # no agent, or it went away
                self.close()
                error, self.version = e, self.versions[0]
                wait = 0 if worked else pause * random.uniform(1, 2)
                pause = min(2 * pause, 0.05)
            if time.monotonic() + wait >= deadline:
                raise error
            time.sleep(wait)

    def _ask(self, deadline):
        if not self.sock:
            self.sock = socket.socket(socket.AF_UNIX)
            self.stream = self.sock.makefile('rb')
            self.sock.connect(self.path)
        self.sock.settimeout(max(deadline - time.monotonic(), 0.001))
        asked = [(BATCH, random.getrandbits(64), self.batch, self.after)]
        if not self.verified:
            asked.insert(0, (ASK_CONTRACT, random.getrandbits(64), 0, 0))
        sent = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        try:
            self.sock.sendall(b''.join(
                REQUEST.pack(self.version, t, 0, count, cookie, after, 0)
                for t, cookie, count, after in asked))
        except (BrokenPipeError, ConnectionResetError):
            pass  # its last words may lie in the socket
        replies = [self._reply(type_, cookie) for type_, cookie, *_ in asked]
        if isinstance(replies[-1], Refused):  # its word counts first
            raise replies[-1]
        if isinstance(replies[0], Refused):
            return  # the realm was found in between: both again
        if not self.verified:
            self._see_contract(replies[0])
        self._see_batch(replies[-1], sent)

    def _receive(self, n):
        data = self.stream.read(n)
        if len(data) < n:
            raise ConnectionResetError('the agent closed the connection')
        return data

    def _reply(self, type_, cookie):
        version, kind, status, length, back = HEADER.unpack(self._receive(16))
        check(version == self.version or status == BAD_VERSION,
              'the agent speaks version %d' % version)
        check(length <= 4000 and ((kind, back) == (type_, cookie)
                                  or kind == 0 and status), 'a wrong header')
        body = self._receive(length)
        if status == 0:
            return body
        retry_ms, n = struct.unpack_from('<II', body + bytes(8))
        check(n == length - 8 and n <= 240, 'a refusal of a wrong length')
        refused = Refused(version, kind, status, retry_ms,
                          body[8:].decode(errors='replace'))
        if kind == 0:
            raise refused
        return refused

    def _see_contract(self, body):
        check(len(body) == 128, 'a contract of a wrong length')
        uuid, t, w, s, d, flags, tick, epoch, realm = struct.unpack(
            '<16s4BII4xq8x16x64s', body)
        check(1 <= t <= 62 and s >= 1 and t + w + s <= 64 and d <= w
              and flags <= 1 and 1 <= tick <= 3600000
              and 0 <= epoch <= 253402300799999, 'an unknown layout')
        realm, known = realm.split(b'\0')[0], \
            (uuid, t, w, s, flags, tick, epoch)
        if self.realm not in (None, realm.decode()) \
                or self.known not in (None, known):
            self.close()
            raise WrongRealm(realm.decode())
        self.known, self.verified = known, True
        self.bits, self.stride, self.size = t + w + s, 1 << w * flags, 1 << s

    def _see_batch(self, body, sent):
        boot, ttl_ms, runs = struct.unpack_from('<QII', body + bytes(16))
        check(1 <= runs <= 16 and len(body) == 16 + 24 * runs,
              'a batch of a wrong length')
        ids, last = [], self.after
        for first, stride, count in struct.iter_unpack('<QQI4x', body[16:]):
            check(count and stride == self.stride and first > last
                  and first >> self.bits == 0
                  and first // stride % self.size + count <= self.size
                  and len(ids) + count <= self.batch, 'an impossible run')
            last = first + stride * (count - 1)
            ids += range(first, last + 1, stride)
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        life = ((sent if boot > now else boot) - now) / 1e9 \
            + min(ttl_ms, self.ttl_ms) / 1000
        self.until = time.monotonic() + life, time.time() + life
        self.after, self.ids = last, ids[::-1]
