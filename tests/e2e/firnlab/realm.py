# SPDX-License-Identifier: Apache-2.0
"""A realm as it stands in ZooKeeper, seen without the command's help."""
import json
import re

from . import wait

CLAIM = re.compile(r'[0-9a-f-]{36}-w(\d*)-(\d{10})$')


class Realm:
    """Looks at /firn/NAME with a client of its own."""

    def __init__(self, server, name, chroot=''):
        self.server = server
        self.name = name
        self.path = '%s/firn/%s' % (chroot, name)

    def _with(self, what):
        with self.server.client() as zoo:
            return what(zoo)

    def contract(self):
        return json.loads(self._with(lambda z: z.get(self.path)[0]))

    @property
    def claims_path(self):
        return '%s/workers.%s' % (self.path, self.contract()['generation'])

    @property
    def marks_path(self):
        return '%s/marks.%s' % (self.path, self.contract()['generation'])

    def claims(self):
        """Names of the claims, without what is no claim."""
        path = self.claims_path
        names, _ = self._with(lambda z: z.list(path))
        return [n for n in names if CLAIM.search(n)]

    def claims_made(self):
        """How many children were ever created there (the counter)."""
        path = self.claims_path

        def count(zoo):
            names, stat = zoo.list(path)
            # each creation and each deletion counts one
            return (stat.cversion + len(names)) // 2
        return self._with(count)

    def marks(self):
        """{worker: document}, with the node's Stat under 'stat'."""
        path = self.marks_path

        def read(zoo):
            found = {}
            for name in zoo.list(path)[0]:
                if not name.isdigit():
                    continue
                data, stat = zoo.get(path + '/' + name)
                found[int(name)] = dict(json.loads(data), stat=stat)
            return found
        return self._with(read)

    def mark_path(self, worker):
        return '%s/%04d' % (self.marks_path, worker)

    def owners(self):
        """{claim: session} of the claims there are."""
        path = self.claims_path

        def read(zoo):
            return {n: zoo.exists(path + '/' + n).owner
                    for n in zoo.list(path)[0] if CLAIM.search(n)}
        return self._with(read)

    def settles(self, agents, seconds=20):
        """Waits until exactly the claims of these agents stand, each agent
        knows its own, and no two have one worker ID: no orphan is left."""
        seen = {}

        def look():
            seen['claims'] = sorted(self.claims())
            seen['agents'] = sorted(str(a.status().get('claim'))
                                    for a in agents)
            return seen['claims'] == seen['agents']
        wait.until(look, seconds, lambda: 'one claim for each agent: %s' % seen,
                   0.2)
        workers = [a.worker() for a in agents]
        assert len(set(workers)) == len(agents), workers
        return workers
