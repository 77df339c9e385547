# SPDX-License-Identifier: Apache-2.0
"""A state file read, and written anew as another host would have."""
import json
import os
import re

SIZE = 4096
SUM = re.compile(rb',"checksum":"([0-9a-f]{16})"}\n *\n$')


def fnv(data):
    h = 0xcbf29ce484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return h


class StateFile:
    def __init__(self, directory):
        self.path = directory + '/state'

    def bytes(self):
        with open(self.path, 'rb') as f:
            return f.read()

    def write(self, raw):
        with open(self.path, 'wb') as f:
            f.write(raw)
        os.chmod(self.path, 0o600)

    def read(self):
        """Its fields; the checksum must be right."""
        raw = self.bytes()
        body = raw[:SUM.search(raw).start()]
        assert len(raw) == SIZE
        assert int(SUM.search(raw).group(1), 16) == fnv(body)
        return json.loads(body + b'}')

    def rewrite(self, **fields):
        """The same record with other values, and a right checksum."""
        doc = self.read()
        assert set(fields) <= set(doc), (fields, doc)
        body = json.dumps(dict(doc, **fields),
                          separators=(',', ':')).encode()[:-1]
        raw = body + b',"checksum":"%016x"}\n' % fnv(body)
        self.write(raw.ljust(SIZE - 1) + b'\n')
