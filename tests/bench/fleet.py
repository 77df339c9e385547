#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a fleet and its auditor cost ZooKeeper: real sessions, each with a
claim and a mark, that renew and read the summary as agents do, and one real
firnd beside them, which audits.  With --agents all of them are real (about
3 MB each).

Prints one row a figure: name, value.  `make bench-fleet`; not part of
`make bench`.
"""
import argparse
import json
import os
import resource
import selectors
import socket
import struct
import sys
import tempfile
import time
import uuid

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, HERE + '/../e2e']

from firnlab import process, wait, zoo  # noqa: E402
from firnlab.agent import Agent  # noqa: E402
from firnlab.build import firn  # noqa: E402
from firnlab.jute import (CREATE2, EPHEMERAL, GET, OPEN_ACL, SEQUENTIAL, SET,  # noqa: E402
                          STAT, take_text, text)
from firnlab.realm import Realm  # noqa: E402
import agents  # noqa: E402
import report  # noqa: E402
from measure import cpu_seconds as seconds_of_cpu  # noqa: E402

PERIOD = 3.0
rows = {}


class Session:
    """As an agent's: one claim, one mark, one request at a time."""

    def __init__(self, port, number, selector):
        self.number = number
        self.boot = str(uuid.uuid4())
        self.sock = socket.create_connection(('127.0.0.1', port), 30)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = struct.pack('>iqiq', 0, 0, 30000, 0) + text(b'\0' * 16) + b'\0'
        self.sock.sendall(struct.pack('>i', len(body)) + body)
        self.inbox = b''
        self.frame()
        self.stat = None
        self.waits = None
        self.tick = 1 << 30
        self.selector = selector

    def frame(self):
        while len(self.inbox) < 4 or len(self.inbox) < 4 + struct.unpack(
                '>i', self.inbox[:4])[0]:
            more = self.sock.recv(65536)
            assert more, 'the server closed a session'
            self.inbox += more
        n = 4 + struct.unpack('>i', self.inbox[:4])[0]
        frame, self.inbox = self.inbox[4:n], self.inbox[n:]
        return frame

    def send(self, operation, body):
        body = struct.pack('>ii', 1, operation) + body
        self.sock.sendall(struct.pack('>i', len(body)) + body)

    def call(self, operation, body):
        self.send(operation, body)
        frame = self.frame()
        error = struct.unpack_from('>i', frame, 12)[0]
        assert error == 0, (operation, error)
        return frame[16:]

    def mark(self):
        self.tick += 1
        status = {'state': 'serving', 'reason': '', 'host': 'h%d' % self.number,
                  'version': '0.1.0', 'pid': 1, 'boot_id': self.boot}
        if self.stat is not None:
            status.update(offset_us=str(self.number % 100), error_us='500',
                          stamp_ms=str(self.stat.mtime), skew_us='0',
                          epoch=str(self.stat.mzxid >> 32))
        return json.dumps({'ceiling_tick': str(self.tick), 'owner': self.claim,
                           'tag': uuid.uuid4().hex, 'status': status})

    def claim_one(self, realm):
        raw = self.call(CREATE2, text('%s/%s-w-' % (
            realm.claims_path, uuid.uuid4())) + text(b'') + OPEN_ACL
            + struct.pack('>i', EPHEMERAL | SEQUENTIAL))
        self.claim = take_text(raw, 0)[0].decode().rsplit('/', 1)[1]
        self.path = '%s/%04d' % (realm.marks_path, int(self.claim[-10:]) % 1024)
        raw = self.call(CREATE2, text(self.path) + text(self.mark()) + OPEN_ACL
                        + struct.pack('>i', 0))
        self.stat = STAT_AT(raw, take_text(raw, 0)[1])

    # -- the run ----------------------------------------------------------

    def renew(self):
        self.send(SET, text(self.path) + text(self.mark())
                  + struct.pack('>i', self.stat.version))
        self.waits = 'set'

    def ready(self, fleet, counts):
        frame = self.frame()
        error = struct.unpack_from('>i', frame, 12)[0]
        assert error == 0, (self.waits, error)
        counts[self.waits] += 1
        if self.waits == 'set':
            self.stat = STAT_AT(frame, 16)
            self.send(GET, text(fleet) + b'\0')
            self.waits = 'get'
        else:
            counts['bytes'] += len(frame)
            self.waits = None


def STAT_AT(raw, at):
    from firnlab.jute import Stat
    return Stat._make(STAT.unpack_from(raw, at))


def turn(sessions, selector, fleet, seconds):
    """Renews each once a PERIOD, for so long; what was done."""
    counts = {'set': 0, 'get': 0, 'bytes': 0, 'late': 0}
    start = time.monotonic()
    at = 0
    while time.monotonic() < start + seconds:
        due = start + at * PERIOD / len(sessions)
        for key, _ in selector.select(max(0, due - time.monotonic())):
            key.data.ready(fleet, counts)
        while start + at * PERIOD / len(sessions) <= time.monotonic():
            session = sessions[at % len(sessions)]
            at += 1
            if session.waits is None:
                session.renew()
            else:
                counts['late'] += 1
    while any(s.waits for s in sessions):
        for key, _ in selector.select(10):
            key.data.ready(fleet, counts)
    counts['seconds'] = time.monotonic() - start
    return counts


def row(name, value):
    rows[name] = float('%.6g' % value)
    print('%-28s %.6g' % (name, value), flush=True)


def summary(realm):
    with realm.server.client() as z:
        data, stat = z.get(realm.path + '/fleet')
    return (json.loads(data) if data else {}), stat, len(data)


def measure(directory, n, seconds):
    server = zoo.Server(directory + '/zk', tick=2000).start()
    firn('realm', 'create', '--first', '--zk', server.hosts, '--realm', 'r')
    realm = Realm(server, 'r')
    agent = Agent(directory, 'auditor', server.hosts, 'r').up()
    selector = selectors.DefaultSelector()
    sessions = [Session(server.port, i, selector) for i in range(n - 1)]
    for s in sessions:
        s.claim_one(realm)
        selector.register(s.sock, selectors.EVENT_READ, s)
    turn(sessions, selector, realm.path + '/fleet', 2 * PERIOD)
    begin = turn(sessions, selector, realm.path + '/fleet', 12)
    doc, stat, _ = summary(realm)
    assert doc['agents']['all'] == n, doc['agents']
    packets = int(zoo.four_letters(server.port, 'mntr').split(
        'zk_packets_received\t')[1].split()[0])
    cpu, own = (seconds_of_cpu(p.pid) for p in (server.process, agent.process))
    counts = turn(sessions, selector, realm.path + '/fleet', seconds)
    took = counts['seconds']
    cpu = seconds_of_cpu(server.process.pid) - cpu
    own = seconds_of_cpu(agent.process.pid) - own
    packets = int(zoo.four_letters(server.port, 'mntr').split(
        'zk_packets_received\t')[1].split()[0]) - packets
    doc, after, size = summary(realm)
    row('sessions', n)
    row('seconds', took)
    row('agents_in_summary', doc['agents']['all'])
    row('hosts_in_average', doc['clocks']['count'])
    row('writes_per_s', counts['set'] / took)
    row('reads_per_s', counts['get'] / took)
    row('requests_per_s', packets / took)
    row('audits_per_s', (after.version - stat.version) / took)
    row('sweep_requests_per_s',
        (packets - counts['set'] - counts['get']) / took)
    row('server_cpu_percent', 100 * cpu / took)
    row('auditor_cpu_percent', 100 * own / took)
    row('sweep_ms', doc['took_ms'])
    row('summary_bytes', size)
    row('read_bytes_per_s', counts['bytes'] / took)
    row('late_turns', counts['late'])
    agent.end()
    server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('.')[0])
    parser.add_argument('--agents', action='store_true',
                        help='real agents instead of sessions')
    parser.add_argument('--json', metavar='FILE', help='also into this file')
    parser.add_argument('n', nargs='?', type=int, default=1000)
    parser.add_argument('seconds', nargs='?', type=int, default=60)
    args = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix='firn-fleet-') as where:
        try:
            if args.agents:
                agents.measure(where, args.n, args.seconds, row, summary)
            else:
                measure(where, args.n, args.seconds)
        finally:
            process.end_all()
    if args.json:
        document = {'machine': report.machine(False), 'values': rows}
        with open(args.json, 'w') as f:
            json.dump(document, f, indent=1)
            f.write('\n')


if __name__ == '__main__':
    main()
