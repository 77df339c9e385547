# SPDX-License-Identifier: Apache-2.0
"""`firn bench` (firn(1)): what it counts, what it says, how it ends."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from firnlab import build, wait
from firnlab.build import firn

pytestmark = pytest.mark.short

MARKS = ['p50', 'p90', 'p99', 'p99.9', 'max']


@pytest.fixture
def agent(lab):
    return lab.agent(lab.realm()).up()


class Terminal:
    """A `firn bench` whose standard error is a terminal."""

    def __init__(self, *args):
        self.fd, slave = pty.openpty()
        self.seen = b''
        self.popen = subprocess.Popen(
            [build.program('firn'), 'bench', *map(str, args)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave,
            env=build.clean_env())
        os.close(slave)

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                part = os.read(self.fd, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            self.seen += part
        return self.seen.decode()

    def shows(self, pattern, seconds=30):
        wait.until(lambda: re.search(pattern, self.read()), seconds,
                   lambda: '%r in %r' % (pattern, self.seen))

    def end(self):
        self.popen.send_signal(signal.SIGINT)
        out = self.popen.communicate(timeout=60 * wait.PATIENCE)[0].decode()
        self.read()
        return self.popen.returncode, out

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        os.close(self.fd)


@pytest.fixture
def terminal():
    running = []

    def start(*args):
        running.append(Terminal(*args))
        return running[-1]
    yield start
    for t in running:
        t.close()


def test_the_document(agent):
    before = time.monotonic()
    result = firn('bench', '--socket', agent.socket, '--threads', 2,
                  '--seconds', 1, '--json')
    assert time.monotonic() - before >= 1
    doc = result.json
    assert result.err == ''
    assert doc['threads'] == 2
    assert doc['elapsed_ms'] >= 1000
    ids = doc['ids']
    assert isinstance(ids, str) and int(ids) >= 2 * 4 * 1024
    assert int(doc['ids_per_second']) > 0 and doc['ps_per_id'] > 0
    # what was taken over how long it took, whatever one costs (2 threads)
    rate = int(ids) * 1000 / doc['elapsed_ms']
    assert abs(int(doc['ids_per_second']) / rate - 1) < 0.01
    # the agent granted them all (and the one that comes before the start)
    assert int(agent.status()['issued']) > int(ids)
    # a quarter of the IDs was timed one by one, and these first
    assert 0 < int(doc['timed']) <= int(ids) / 4 + 2 * 1024
    latency = [int(doc['latency_ns'][m]) for m in MARKS]
    assert latency == sorted(latency) and latency[0] > 0
    assert doc['failed'] == '0' and doc['errors'] == {}


def test_the_table_without_a_terminal(agent):
    result = firn('bench', '--socket', agent.socket, '--seconds', 1)
    assert result.err == ''
    rows = dict(line.split(None, 1) for line in result.out.splitlines())
    assert list(rows) == ['threads', 'seconds', 'IDs', 'IDs/s', 'one',
                          *MARKS, 'failed']
    assert rows['threads'] == '1' and rows['failed'] == '0'
    # what it was that took so long is counted, not printed
    assert len(result.out.splitlines()) == 11


def test_a_slow_agent_is_not_made_quick(bare_lab):
    """Over its rate a thread waits: that counts, and ends with the time."""
    one = bare_lab.agent('default', hosts='127.0.0.1:1', conf={
        'worker_source': 'static', 'static_worker': 1,
        'max_ids_per_second': 1000}).up(20, '--first-use')
    doc = firn('bench', '--socket', one.socket, '--seconds', 2, '--json').json
    # a second's worth at once, and what came since then
    assert 0 < int(doc['ids']) <= 1100 + doc['elapsed_ms']
    assert int(doc['ids_per_second']) <= \
        int(doc['ids']) * 1000 / doc['elapsed_ms'] * 1.01
    assert doc['ps_per_id'] > 0 and int(doc['timed']) > 0


def test_the_live_line_and_an_agent_that_goes_away(agent, terminal):
    bench = terminal('--socket', agent.socket, '--seconds', 3000)
    bench.shows(r'[1-9]\S* M IDs/s, 0 failed')
    agent.kill()
    bench.shows(' [1-9][0-9]* failed')
    status, out = bench.end()
    assert status == 0, out
    # the line is gone in the end, and was never part of the output
    assert bench.seen.endswith(b'\r\033[K')
    assert 'left' not in out
    assert 'FIRN_EAWAY' in out.split('failed')[1], out


def test_the_document_has_no_live_line(agent, terminal):
    bench = terminal('--socket', agent.socket, '--seconds', 1, '--json')
    out = bench.popen.communicate(timeout=60 * wait.PATIENCE)[0]
    assert bench.popen.returncode == 0
    assert int(json.loads(out)['ids']) > 0
    assert bench.read() == ''


def test_without_an_agent(tmp_path):
    for flags in ([], ['--json']):
        result = firn('bench', '--socket', tmp_path / 'none', *flags,
                      status=69)
        assert not result.out
        assert len(result.err.splitlines()) == 1
        assert result.err.startswith('firn bench: %s' % tmp_path)


def test_another_realm(agent):
    result = firn('bench', '--socket', agent.socket, status=78,
                  env={'FIRN_REALM': 'another'})
    assert not result.out and 'another' in result.err


@pytest.mark.parametrize('words', [
    ['--threads', '0'], ['--threads', '257'], ['--seconds', '0'],
    ['--seconds'], ['--threads', 'x'], ['extra'], ['--no-such-option'],
    ['--socket', 'x' * 200],
], ids=' '.join)
def test_wrong_arguments(words):
    result = firn('bench', *words, status=64)
    assert len(result.err.splitlines()) == 1 and not result.out


def test_help():
    result = firn('bench', '--help')
    assert result.out.startswith('usage: firn bench')
    assert '  bench    ' in firn('--help').out
