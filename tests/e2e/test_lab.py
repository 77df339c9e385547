# SPDX-License-Identifier: Apache-2.0
"""The laboratory itself: what its tools claim to do, they do.

A proxy that swallowed nothing would make every test of lost replies pass.
"""
import socket
import time

import pytest

from faultproxy import Proxy
from firnlab import wait, zoo
from firnlab.jute import (EPHEMERAL, SEQUENTIAL, BadVersion, NodeExists,
                          NoNode, Zoo)


@pytest.fixture
def proxy(shared_server):
    with Proxy(shared_server.port) as p:
        yield p


@pytest.fixture
def node(shared_server, request):
    """A node of the test's own."""
    path = '/lab-' + request.node.name.replace('[', '-').replace(']', '')
    with shared_server.client() as z:
        z.create(path)
    yield path
    with shared_server.client() as z:
        z.delete_tree(path)


def test_the_client_reads_and_writes(shared_server, node):
    with shared_server.client() as z:
        assert z.create(node + '/a', b'x') == node + '/a'
        data, stat = z.get(node + '/a')
        assert (data, stat.version, stat.length) == (b'x', 0, 1)
        assert z.set(node + '/a', b'yy', 0).version == 1
        with pytest.raises(BadVersion):
            z.set(node + '/a', b'z', 0)
        with pytest.raises(NodeExists):
            z.create(node + '/a')
        with pytest.raises(NoNode):
            z.get(node + '/b')
        assert z.exists(node + '/b') is None
        names, stat = z.list(node)
        assert (names, stat.cversion) == (['a'], 1)


def test_a_closed_session_takes_its_ephemeral_nodes_along(shared_server, node):
    with shared_server.client() as z:
        path = z.create(node + '/e-', b'', EPHEMERAL | SEQUENTIAL)
        assert path == node + '/e-0000000000'
        assert z.exists(path).owner != 0
    with shared_server.client() as z:
        assert z.exists(path) is None


def test_the_proxy_passes_what_it_is_not_told_to_spoil(proxy, node):
    with Zoo(proxy.port) as z:
        for i in range(50):
            z.create('%s/%d' % (node, i), b'x' * 10000)
        assert len(z.list(node)[0]) == 50
    assert proxy.counts['create'] == 50


@pytest.mark.parametrize('then', ['reset', 'silence'])
def test_a_swallowed_reply_was_carried_out(proxy, shared_server, node, then):
    rule = proxy.swallow('create', '/%s/b$' % node[1:], then=then)
    z = Zoo(proxy.port, timeout=0.5)
    z.create(node + '/a')  # another path: not concerned
    with pytest.raises(OSError) as caught:
        z.create(node + '/b')
    assert isinstance(caught.value, socket.timeout) == (then == 'silence')
    rule.wait(1)
    with shared_server.client() as direct:
        assert direct.list(node)[0] == ['a', 'b']
    z.create(node + '/c')  # on a new connection; the rule is used up


def test_a_skipped_reply_leaves_the_connection(proxy, node):
    rule = proxy.swallow('create', node, then='skip')
    with Zoo(proxy.port, timeout=0.5) as z:
        assert z.exists(node)
        frames = proxy.accepted
        with pytest.raises(socket.timeout):
            z.create(node + '/a')
        assert proxy.accepted == frames
        rule.wait(1)


def test_a_swallowed_request_was_not_carried_out(proxy, shared_server, node):
    proxy.swallow('set', node, what='request')
    z = Zoo(proxy.port, timeout=0.5)
    with pytest.raises(OSError):
        z.set(node, b'x')
    with shared_server.client() as direct:
        assert direct.get(node)[1].version == 0


@pytest.mark.parametrize('up', [True, False])
def test_a_hole_swallows_one_direction(proxy, shared_server, node, up):
    z = Zoo(proxy.port, timeout=0.5)
    z.exists(node)
    proxy.hole(up=up, down=not up)
    with pytest.raises(socket.timeout):
        z.set(node, b'x')
    with shared_server.client() as direct:
        assert direct.get(node)[1].version == (0 if up else 1)
    proxy.heal()
    assert z.exists(node)


def test_refuse_and_reset_and_delay(proxy, node):
    z = Zoo(proxy.port, timeout=2)
    z.exists(node)
    proxy.reset()
    with pytest.raises(OSError):
        z.exists(node)
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        z.exists(node)
    proxy.heal()
    z.exists(node)
    proxy.slow(0.1)
    start = time.monotonic()
    z.exists(node)
    assert 0.2 <= time.monotonic() - start < 5


def test_a_server_is_killed_frozen_wiped_and_rolled_back(tmp_path):
    server = zoo.Server(tmp_path / 'zk').start()
    try:
        with server.client() as z:
            z.create('/a')
        server.save('early')
        with server.client() as z:
            z.create('/b')
        server.kill()
        server.start()
        with server.client() as z:
            assert z.exists('/b')
        server.kill()
        server.roll_back('early')
        server.start()
        with server.client() as z:
            assert z.exists('/a') and z.exists('/b') is None
        server.freeze()
        assert zoo.four_letters(server.port, 'srvr', 0.3) == ''
        server.thaw()
        server.ready()
        server.kill()
        server.wipe()
        server.start()
        with server.client() as z:
            assert z.list('/')[0] == ['zookeeper']
    finally:
        server.kill()


def test_an_ensemble_loses_its_leader(tmp_path):
    ensemble = zoo.Ensemble(tmp_path)
    try:
        ensemble.start()
        with ensemble.client() as z:
            z.create('/a')
        old = ensemble.leader()
        old.kill()
        new = ensemble.leader()
        assert new is not old
        with new.client() as z:
            assert z.exists('/a')
    finally:
        for server in ensemble.servers:
            if server.process.running():
                server.process.kill()


def test_waiting_has_a_deadline():
    with pytest.raises(wait.Late, match='the sun'):
        wait.until(lambda: False, 0.05, 'the sun', every=0.01)
