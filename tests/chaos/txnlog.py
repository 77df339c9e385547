# SPDX-License-Identifier: Apache-2.0
"""What ZooKeeper itself wrote down: its transaction logs, and from them the
ticks that each agent was ever allowed to issue on each worker ID.

Invariant: this is worked out from the servers' own files and from who held
which session, never from what an agent says of itself.
"""
import collections
import glob
import json
import re
import struct

ENTRY, HEADER = struct.Struct('>qi'), struct.Struct('>qiqqi')
FILE_HEADER = 16
CREATES, SET, DELETE = (1, 15, 19, 21), 5, 2
MARK = re.compile(r'/marks\.[^/]+/(\d+)$')

Change = collections.namedtuple('Change', 'zxid session kind path data')


def take_buffer(raw, at):
    (n,) = struct.unpack_from('>i', raw, at)
    return raw[at + 4:at + 4 + max(n, 0)], at + 4 + max(n, 0)


def parse(raw):
    """One record of the log; None if it changes no node's data."""
    session, _, zxid, _, kind = HEADER.unpack_from(raw)
    if kind not in CREATES + (SET, DELETE):
        return None
    path, at = take_buffer(raw, HEADER.size)
    data = b'' if kind == DELETE else take_buffer(raw, at)[0]
    name = {SET: 'set', DELETE: 'delete'}.get(kind, 'create')
    return Change(zxid, session, name, path.decode(), data)


def read_file(path):
    with open(path, 'rb') as f:
        raw = f.read()
    assert raw[:4] == b'ZKLG', path
    at, found = FILE_HEADER, []
    while at + ENTRY.size <= len(raw):
        _, n = ENTRY.unpack_from(raw, at)
        at += ENTRY.size
        if n == 0 or at + n >= len(raw) or raw[at + n:at + n + 1] != b'B':
            break  # room for more, or cut off by a kill
        change = parse(raw[at:at + n])
        if change is not None:
            found.append(change)
        at += n + 1
    return found


def read_servers(directories):
    """All changes in ZooKeeper's order.  A server that was away too long gets
    a snapshot instead of what it missed: what one lacks another has."""
    found = {}
    for directory in directories:
        for path in glob.glob(directory + '/data/version-2/log.*'):
            for change in read_file(path):
                assert found.setdefault(change.zxid, change) == change, (
                    'two servers disagree', found[change.zxid], change)
    return [found[zxid] for zxid in sorted(found)]


class Mark:
    """One mark as it stands, and the part of the ticks that is its owner's."""

    def __init__(self, worker, agent, owner, ceiling):
        self.worker, self.agent, self.owner = worker, agent, owner
        self.base = self.ceiling = ceiling
        self.lowered = False


class Windows:
    """The replay of all changes.  allowed: {agent: [(worker, first, last)]},
    wrong: what no agent may do."""

    def __init__(self, changes, agent_of):
        self.agent_of = agent_of  # {session: agent}
        self.marks = {}
        self.wrong = []
        self.spans = []  # (worker, first, last, agent)
        self.takeovers = self.writes = 0
        for change in changes:
            match = MARK.search(change.path)
            if match:
                self.change(change, int(match.group(1)))
        for path in list(self.marks):
            self.settle(path)
        self.allowed = self.gather()

    def settle(self, path):
        """The owner is at its end on this mark: nobody lowers it any more."""
        mark = self.marks.pop(path)
        if mark.ceiling > mark.base:
            self.spans.append((mark.worker, mark.base + 1, mark.ceiling,
                               mark.agent))

    def change(self, change, worker):
        if change.kind == 'delete':
            if change.session in self.agent_of:
                self.wrong.append('%s deletes %s' % (
                    self.agent_of[change.session], change.path))
            if change.path in self.marks:
                self.settle(change.path)
            return
        agent = self.agent_of.get(change.session)
        if agent is None:
            self.wrong.append('a stranger writes ' + change.path)
        doc = json.loads(change.data)
        ceiling, owner = int(doc['ceiling_tick']), doc['owner']
        self.writes += 1
        mark = self.marks.get(change.path)
        if mark is None:
            if change.kind == 'set':
                self.wrong.append('no mark was there: ' + change.path)
            self.marks[change.path] = Mark(worker, agent, owner, ceiling)
        elif owner != mark.owner:
            self.take_over(change.path, agent, owner, ceiling)
        else:
            self.move(change.path, mark, agent, ceiling)

    def take_over(self, path, agent, owner, ceiling):
        """By another agent: from then on, above what it found.  By a new
        process of the same one, which may go on in the window of the process
        before (its state file says from where) and hand back what is left:
        what that one had issued must lie below, and each ID is looked at."""
        mark = self.marks[path]
        before = mark.ceiling
        if ceiling < before:
            self.wrong.append('%s takes over %s and lowers it from %d to %d'
                              % (agent, path, before, ceiling))
        self.takeovers += 1
        if agent != mark.agent:
            self.settle(path)
            mark = self.marks[path] = Mark(mark.worker, agent, owner, before)
        mark.owner, mark.lowered = owner, False
        mark.ceiling = max(before, ceiling)

    def move(self, path, mark, agent, ceiling):
        if agent != mark.agent:
            self.wrong.append('%s writes as %s, who is %s'
                              % (agent, mark.owner, mark.agent))
        if mark.lowered and ceiling > mark.ceiling:
            self.wrong.append('%s raises %s after it was lowered at its end'
                              % (agent, path))
        if ceiling < mark.ceiling:
            mark.lowered = True
        if ceiling < mark.base:
            self.wrong.append('%s lowers %s below %d, where it took it over'
                              % (agent, path, mark.base))
        mark.ceiling = max(ceiling, mark.base)

    def gather(self):
        """Joins what is one agent's, and finds what is two agents'."""
        allowed = collections.defaultdict(list)
        last = None
        for worker, first, end, agent in sorted(self.spans):
            rows = allowed[agent]
            if last and last[0] == worker and first <= last[1] \
                    and agent != last[2]:
                self.wrong.append('ticks %d to %d of worker %d were allowed '
                                  'to %s and to %s' % (
                                      first, min(last[1], end), worker,
                                      last[2], agent))
            if rows and rows[-1][0] == worker and first <= rows[-1][2] + 1:
                rows[-1] = (worker, rows[-1][1], max(rows[-1][2], end))
            else:
                rows.append((worker, first, end))
            if last is None or last[0] != worker or end > last[1]:
                last = (worker, end, agent)
        return allowed
