# SPDX-License-Identifier: Apache-2.0
"""What an agent says over HTTP, and connections that misbehave."""
import http.client
import json
import re
import socket

from .wait import PATIENCE

SECONDS = 10 * PATIENCE


def connect(where, seconds=SECONDS, receive=None):
    """A raw connection to a path, or to (address, port); receive: bytes that
    the kernel takes for us."""
    family = socket.AF_UNIX if isinstance(where, str) else (
        socket.AF_INET6 if ':' in where[0] else socket.AF_INET)
    sock = socket.socket(family)
    sock.settimeout(seconds)
    if receive:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    sock.connect(where)
    return sock


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    @property
    def json(self):
        return json.loads(self.text)


def ask(where, path, method='GET', body=None, headers=None):
    """One request, one Reply; what is no reply raises."""
    c = http.client.HTTPConnection('agent', timeout=SECONDS)
    c.sock = connect(where)
    try:
        c.request(method, path, body=body, headers=headers or {})
        return Reply(c.getresponse())
    finally:
        c.close()


SAMPLE = re.compile(r'([a-z_]+)(?:\{(.*)\})? (\S+)$')


class Metrics:
    """One scrape: families in their order, samples by name and labels."""

    def __init__(self, where):
        self.text = ask(where, '/metrics').text
        self.types, self.helps, self.samples = {}, {}, {}
        for line in self.text.splitlines():
            if line.startswith('# HELP '):
                _, _, name, words = line.split(' ', 3)
                assert name not in self.helps, name
                self.helps[name] = words
            elif line.startswith('# TYPE '):
                _, _, name, kind = line.split(' ')
                assert name not in self.types and name in self.helps, name
                self.types[name] = kind
            else:
                self.take(line)

    def take(self, line):
        name, labels, value = SAMPLE.match(line).groups()
        key = name + ('{%s}' % labels if labels else '')
        assert key not in self.samples, key
        family = list(self.types)[-1]  # samples stand below their family
        assert name == family or (self.types[family] == 'histogram' and
                                  name.startswith(family + '_')), line
        self.samples[key] = float(value)

    def __getitem__(self, key):
        return self.samples[key]

    def get(self, key):
        return self.samples.get(key)

    def state(self):
        return [key[len('firn_state{state="'):-2] for key in self.samples
                if key.startswith('firn_state{') and self[key] == 1]

    def alerts(self):
        return sorted(re.search('kind="([a-z_]+)"', key).group(1)
                      for key in self.samples
                      if key.startswith('firn_alert{') and self[key] == 1)


def send(sock, data):
    """As much as it takes; False: it has closed."""
    try:
        sock.sendall(data)
    except OSError:
        return False
    return True


def closed(sock, seconds=SECONDS):
    """Reads to the end: True once the other side has closed."""
    sock.settimeout(seconds)
    try:
        while sock.recv(65536):
            pass
    except socket.timeout:
        return False
    except OSError:
        pass
    return True
