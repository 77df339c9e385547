# SPDX-License-Identifier: Apache-2.0
"""HTTP: what it says is so, and nobody who asks it delays an ID."""
import os
import stat
import time

import pytest

from firnlab import wait, web
from firnlab.load import check
from firnlab.process import free_port

OUTAGE = {'session_ms': 2000, 'renew_ms': 500, 'op_deadline_ms': 400,
          'reserve_ms': 4000}


def served(lab, realm, conf=None, **options):
    """An agent with HTTP on a Unix socket; not started yet."""
    agent = lab.agent(realm, conf=dict(conf or {}), **options)
    agent.web = agent.base + '.web'
    agent.conf['http'] = 'unix:' + agent.web
    return agent


def ready(agent):
    return web.ask(agent.web, '/readyz')


# ---- what it says -----------------------------------------------------------

@pytest.mark.short
def test_readyz_has_the_reason_and_healthz_does_not_care(own_lab):
    server = own_lab.own_server()
    agent = served(own_lab, 'later', OUTAGE).start()
    wait.until(lambda: os.path.exists(agent.web), 10, 'a socket')
    wait.until(lambda: 'has not been found' in ready(agent).text, 10,
               lambda: ready(agent).text)
    reply = ready(agent)
    assert reply.status == 503 and reply.text.startswith('refusing: no_realm')
    assert web.ask(agent.web, '/healthz').text == 'ok\n'

    own_lab.realm(name='later')
    agent.serving()
    reply = ready(agent)
    assert (reply.status, reply.text) == (200, 'serving\n')

    agent.reserves(2500)
    server.kill()
    agent.wait_status(lambda d: d['state'] == 'isolated', 10, 'isolated')
    reply = ready(agent)
    assert (reply.status, reply.text) in ((200, 'isolated\n'),) or (
        'window_spent' in reply.text), reply.text
    agent.refuses('window_spent', 20)
    reply = ready(agent)
    assert reply.status == 503, reply.text
    assert reply.text.startswith('refusing: window_spent: '), reply.text
    assert web.ask(agent.web, '/healthz').status == 200
    server.start()
    agent.serving(30)
    assert ready(agent).status == 200


@pytest.mark.short
def test_status_is_the_document_of_the_command(lab):
    agent = served(lab, lab.realm()).up()
    load = lab.load(agent, threads=1, rate=100, timeout=5000)
    load.takes(100)
    load.stop()
    reply = web.ask(agent.web, '/status')
    assert reply.headers['Content-Type'] == 'application/json'
    here, there = reply.json, agent.status()
    assert list(here) == list(there) and int(here['issued']) >= 100
    # the command is a client, too, and time goes on
    for key in set(there) - {'clients', 'window_left_ms', 'mark_ms',
                             'offset_ms', 'error_ms', 'kernel_error_ms'}:
        assert here[key] == there[key], key


def test_only_get_and_head_and_nothing_else_is_there(lab):
    agent = served(lab, lab.realm()).up()
    for method in ('POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH',
                   'CONNECT', 'BREW'):
        reply = web.ask(agent.web, '/healthz', method)
        assert reply.status == 405, (method, reply.status)
        assert reply.headers['Allow'] == 'GET, HEAD'
    assert web.ask(agent.web, '/status', 'POST', b'x' * 10).status == 413
    for path in ('/', '/metric', '/metrics/', '/../metrics', '//', '/%00'):
        assert web.ask(agent.web, path).status == 404, path
    assert web.ask(agent.web, '/fleet').status == 503
    for path in ('/status', '/healthz', '/readyz?x=y'):
        head = web.ask(agent.web, path, 'HEAD')
        assert head.status == 200 and head.text == ''
        assert int(head.headers['Content-Length']) > 2
        assert head.headers['Connection'] == 'close'
        assert head.headers['Cache-Control'] == 'no-store'
    doc = agent.status()
    assert (doc['clients'], doc['issued']) == ('1', '0')  # the command itself


# ---- where it listens -------------------------------------------------------

def test_any_address_that_is_named_and_a_line_for_one_in_use(lab):
    realm = lab.realm()
    for host in ('127.0.0.1', '[::1]', '127.8.9.10'):
        for _ in range(5):  # others may take a port that was free
            agent = lab.agent(realm)
            port = free_port()
            agent.start('--http', '%s:%d' % (host, port))
            wait.until(lambda: not agent.process.running() or
                       agent.status(), 20, agent.tail)
            if agent.process.running():
                break
        where = (host.strip('[]'), port)
        assert web.ask(where, '/healthz').text == 'ok\n'
        # another one there: one line, and a status that is tried again
        other = lab.agent(realm)
        other.may_fail = True
        other.start('--http', '%s:%d' % (host, port))
        assert other.process.wait(20) == 1
        assert 'http: cannot listen on %s:%d: Address already in use' % (
            host, port) in other.log()
        assert not os.path.exists(other.socket)
        agent.end()
        with pytest.raises(OSError):
            web.connect(where)


def test_a_unix_socket_is_made_and_removed_as_the_other(lab):
    agent = served(lab, lab.realm()).up()
    st = os.stat(agent.web)
    assert stat.S_ISSOCK(st.st_mode) and st.st_mode & 0o777 == 0o660
    other = lab.agent(agent.realm, conf={'http': 'unix:' + agent.web})
    other.may_fail = True
    other.start()
    assert other.process.wait(20) == 1
    assert 'http: another firnd (pid %d)' % agent.process.pid in other.log()
    assert web.ask(agent.web, '/healthz').status == 200
    agent.kill()
    assert os.path.exists(agent.web)
    agent.up()  # what a killed one leaves is replaced
    assert web.ask(agent.web, '/healthz').status == 200
    agent.end()
    assert not os.path.exists(agent.web)


def test_off_unless_configured(lab):
    agent = lab.agent(lab.realm()).up()
    inodes = set()
    for name in os.listdir('/proc/%d/fd' % agent.process.pid):
        link = os.readlink('/proc/%d/fd/%s' % (agent.process.pid, name))
        if link.startswith('socket:['):
            inodes.add(link[8:-1])
    for kind in ('tcp', 'tcp6'):
        with open('/proc/net/' + kind) as f:
            for line in f.read().splitlines()[1:]:
                word = line.split()
                assert word[9] not in inodes or word[3] != '0A', line
