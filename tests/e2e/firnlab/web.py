# SPDX-License-Identifier: Apache-2.0
"""What an agent says over HTTP, and connections that misbehave."""
import http.client
import json
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
