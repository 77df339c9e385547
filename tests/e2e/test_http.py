# SPDX-License-Identifier: Apache-2.0
"""HTTP: what it says is so, and nobody who asks it delays an ID."""
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time

import pytest

from firnlab import wait, web
from firnlab.agent import QUICK
from firnlab.load import check
from firnlab.process import free_port

OUTAGE = {'session_ms': 2000, 'renew_ms': 500, 'op_deadline_ms': 400,
          'reserve_ms': 8000}


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
    for path in ('/metric', '/metrics/', '/../metrics', '/%00'):
        assert web.ask(agent.web, path).status == 404, path
    for path in ('/status', '/healthz', '/readyz?x=y'):
        head = web.ask(agent.web, path, 'HEAD')
        assert head.status == 200 and head.text == ''
        assert int(head.headers['Content-Length']) > 2
        assert head.headers['Connection'] == 'close'
        assert head.headers['Cache-Control'] == 'no-store'
    doc = agent.status()
    assert (doc['clients'], doc['issued']) == ('1', '0')  # the command itself


# ---- metrics ----------------------------------------------------------------

COUNTERS = """
    firn_ids_issued_total firn_batches_granted_total firn_refusals_total
    firn_ticks_borrowed_total firn_sequence_exhausted_total
    firn_clock_steps_total firn_zookeeper_sessions_total firn_renewals_total
    firn_claims_total firn_client_connections_total
    firn_client_rejections_total firn_receive_bytes_total
    firn_transmit_bytes_total""".split()
GAUGES = """
    firn_build_info firn_agent_info firn_state firn_clock_skew_seconds
    firn_clock_offset_seconds firn_clock_offset_error_seconds
    firn_clock_peers firn_clock_kernel_synchronized
    firn_clock_kernel_error_seconds firn_window_remaining_seconds
    firn_mark_lead_seconds firn_zookeeper_connected firn_clients
    firn_layout_end_timestamp_seconds firn_layout_sign_timestamp_seconds
    firn_alert
    firn_config_last_reload_successful
    firn_config_last_reload_success_timestamp_seconds
    firn_auditor""".split()
FLEET = """
    firn_fleet_agents firn_fleet_workers firn_fleet_clock_spread_seconds
    firn_fleet_clock_offset_seconds firn_fleet_duplicate_claims
    firn_audit_duration_seconds""".split()
HISTOGRAMS = ['firn_renewal_duration_seconds']
# No value without peers, and in a layout of 63 bits.
UNKNOWN_ALONE = {'firn_clock_skew_seconds', 'firn_layout_sign_timestamp_seconds'}


def check_metrics(text):
    """By Prometheus' own judge."""
    promtool = shutil.which('promtool')
    assert promtool, 'no promtool (Debian package prometheus)'
    done = subprocess.run([promtool, 'check', 'metrics'], input=text,
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    assert done.returncode == 0 and done.stdout == '', done.stdout


def test_metrics_are_these_and_no_others(lab):
    agent = served(lab, lab.realm(), QUICK).up().reserves(10000)
    load = lab.load(agent, threads=2, rate=500, timeout=10000)
    load.takes(200)
    reply = web.ask(agent.web, '/metrics')
    assert reply.headers['Content-Type'] == (
        'text/plain; version=0.0.4; charset=utf-8')
    check_metrics(reply.text)
    m = web.Metrics(agent.web)
    own = [name for name in m.types if not name.startswith('process_')]
    assert sorted(own) == sorted(COUNTERS + GAUGES + FLEET + HISTOGRAMS)
    for kind, names in (('counter', COUNTERS), ('gauge', GAUGES + FLEET),
                        ('histogram', HISTOGRAMS)):
        assert {m.types[name] for name in names} == {kind}
    bare = {name for name in m.types if not any(
        key.split('{')[0].startswith(name) for key in m.samples)}
    assert bare <= UNKNOWN_ALONE | set(FLEET) | {'firn_clock_kernel_synchronized',
                                    'firn_clock_kernel_error_seconds'}
    assert {name for name in m.types if name not in own} >= {
        'process_cpu_seconds_total', 'process_open_fds',
        'process_resident_memory_bytes', 'process_start_time_seconds'}
    load.stop()


def test_metrics_agree_with_the_status(lab):
    agent = served(lab, lab.realm(), QUICK).up().reserves(10000)
    load = lab.load(agent, threads=2, rate=500, timeout=10000)
    load.takes(200)
    load.stop()
    doc, m = agent.status(), web.Metrics(agent.web)
    assert m.state() == [doc['state']] == ['serving']
    who = 'firn_agent_info{realm="%s",worker_id="%s",layout="%s"}' % (
        doc['realm'], doc['worker'], doc['layout'])
    assert m[who] == 1
    assert m['firn_build_info{version="%s"}' % doc['version']] == 1
    assert m['firn_ids_issued_total'] == int(doc['issued']) >= 200
    assert m['firn_batches_granted_total'] == int(doc['batches'])
    assert sum(v for k, v in m.samples.items() if k.startswith(
        'firn_refusals_total')) == int(doc['refusals']) + int(doc['limited'])
    assert m['firn_zookeeper_connected'] == doc['connected'] == 1
    assert m['firn_clock_peers'] == doc['peers'] == 0
    left = m['firn_window_remaining_seconds']
    assert 0 < left <= 60.5 and m['firn_mark_lead_seconds'] >= left - 0.1
    assert m['firn_claims_total{cause="start"}'] == 1
    assert m['firn_zookeeper_sessions_total{event="established"}'] == 1
    ok = m['firn_renewals_total{result="ok"}']
    assert ok == m['firn_renewal_duration_seconds_count'] >= 1
    assert 0 < m['firn_renewal_duration_seconds_sum'] < ok * 60
    assert m['firn_receive_bytes_total'] >= 32 * m['firn_batches_granted_total']
    assert m['firn_transmit_bytes_total'] > m['firn_receive_bytes_total'] / 2
    fds = len(os.listdir('/proc/%d/fd' % agent.process.pid))
    # the scrape's own connection, and what comes and goes
    assert abs(m['process_open_fds'] - fds) <= 8
    assert m['process_max_fds'] >= fds
    assert m.alerts() == []


def test_no_label_grows_with_clients(lab):
    agent = served(lab, lab.realm(), {'max_clients': 40}).up()
    few = web.Metrics(agent.web)
    socks = [web.connect(agent.socket) for _ in range(60)]
    wait.until(lambda: web.Metrics(agent.web)[
        'firn_client_rejections_total{reason="too_many"}'] == 20, 10,
        'twenty turned away')
    m = web.Metrics(agent.web)
    assert m['firn_clients'] == 40
    assert m['firn_client_connections_total'] >= 40
    same = {key for key in m.samples if 'agent_info' not in key}
    assert same == {key for key in few.samples if 'agent_info' not in key} | {
        key for key in same if key.startswith('firn_clock_offset')}
    for sock in socks:
        sock.close()


@pytest.mark.short
def test_an_outage_in_readyz_metrics_and_alerts(own_lab):
    """healthz does not care; readyz and the alerts say why; both come back."""
    server = own_lab.own_server()
    agent = served(own_lab, 'later', OUTAGE).start()
    wait.until(lambda: os.path.exists(agent.web), 10, 'a socket')
    wait.until(lambda: 'has not been found' in ready(agent).text, 10,
               lambda: ready(agent).text)
    reply = ready(agent)
    assert reply.status == 503 and reply.text.startswith('refusing: no_realm')
    wait.until(lambda: web.Metrics(agent.web).alerts() == ['no_realm'], 10,
               'no_realm')
    assert 'alert no_realm: realm later is not known' in agent.log()
    m = web.Metrics(agent.web)
    assert m.get('firn_layout_end_timestamp_seconds') is None
    refused = m['firn_refusals_total{reason="no_realm"}']

    own_lab.realm(name='later')
    agent.serving()
    assert (ready(agent).status, ready(agent).text) == (200, 'serving\n')
    agent.reserves(5000)
    m = web.Metrics(agent.web)
    assert m.alerts() == [] and m.state() == ['serving']
    # what was refused before the realm was known is not forgotten
    assert m['firn_refusals_total{reason="no_realm"}'] >= refused

    server.kill()
    wait.until(lambda: ready(agent).text != 'serving\n', 10, 'an outage')
    reply = ready(agent)  # on a slow machine it may be over with the window
    assert (reply.status, reply.text) == (200, 'isolated\n') or (
        'window_spent' in reply.text), reply.text
    wait.until(lambda: 'window_low' in web.Metrics(agent.web).alerts(), 10,
               'window_low')
    agent.refuses('window_spent', 20)
    reply = ready(agent)
    assert reply.status == 503, reply.text
    assert reply.text.startswith('refusing: window_spent: '), reply.text
    assert web.ask(agent.web, '/healthz').text == 'ok\n'
    m = web.Metrics(agent.web)
    assert m.alerts() == ['window_low'] and m.state() == ['refusing']
    assert m['firn_window_remaining_seconds'] == 0
    assert m['firn_mark_lead_seconds'] <= 0
    assert m['firn_zookeeper_connected'] == 0
    assert m['firn_zookeeper_sessions_total{event="disconnected"}'] >= 1

    server.start()
    agent.serving(30).reserves(5000)
    assert ready(agent).status == 200
    wait.until(lambda: web.Metrics(agent.web).alerts() == [], 10, 'cleared')
    m = web.Metrics(agent.web)
    assert 2 <= (m['firn_zookeeper_sessions_total{event="resumed"}'] +
                 m['firn_zookeeper_sessions_total{event="established"}'])
    assert 1 <= sum(m['firn_claims_total{cause="%s"}' % c]
                    for c in ('start', 'session', 'moved'))
    assert agent.log().count('alert window_low') == 1  # once in an outage
    assert agent.log().count('window: above half again') == 1


def test_clock_and_configuration(lab):
    realm = lab.realm()
    peers = [lab.host(realm).up() for _ in range(2)]
    agent = lab.host(realm, conf={'renew_ms': 500, 'op_deadline_ms': 400,
                                  'reserve_ms': 10000})
    agent.web = agent.base + '.web'
    agent.conf.update(http='unix:' + agent.web)
    agent.up().reserves(5000)
    agent.wait_status(lambda d: d['peers'] == 2, 20, 'two peers')
    m = web.Metrics(agent.web)
    assert m['firn_clock_peers'] == 2 and abs(
        m['firn_clock_skew_seconds']) < 0.5
    start = m['firn_config_last_reload_success_timestamp_seconds']
    assert start == m['process_start_time_seconds']
    agent.clock.step(-3)
    wait.until(lambda: 'clock_step' in web.Metrics(agent.web).alerts(), 10,
               'clock_step')
    assert web.Metrics(agent.web)[
        'firn_clock_steps_total{direction="back"}'] == 1
    agent.clock.step(3)
    wait.until(lambda: web.Metrics(agent.web).alerts() == [], 20, 'cleared')
    # a bad file is no reload
    with open(agent.base + '.json', 'w') as f:
        f.write('{')
    agent.process.signal(signal.SIGHUP)
    wait.until(lambda: web.Metrics(agent.web)[
        'firn_config_last_reload_successful'] == 0, 10, 'a failed reload')
    assert web.Metrics(agent.web)[
        'firn_config_last_reload_success_timestamp_seconds'] == start
    for peer in peers:
        peer.end()


def test_alerts_of_the_clock_by_how_far_it_is_off(lab):
    realm = lab.realm()
    peers = [lab.host(realm).up() for _ in range(2)]
    for seconds, alert in ((0.0, []), (2.0, ['skew_warn']),
                           (30.0, ['skew_refuse'])):
        host = lab.host(realm, offset=seconds, conf={'alert_unsynced': 'on'})
        host.web = host.base + '.web'
        host.conf['http'] = 'unix:' + host.web
        host.start().wait_status(lambda d: d['peers'] >= 2, 20, 'peers')
        m = web.Metrics(host.web)
        if m.get('firn_clock_kernel_synchronized') == 0:
            alert = sorted(alert + ['clock_unsynced'])
        wait.until(lambda: web.Metrics(host.web).alerts() == alert, 10,
                   lambda: 'not %s: %s' % (alert, web.Metrics(
                       host.web).alerts()))
        assert abs(web.Metrics(host.web)['firn_clock_skew_seconds'] -
                   seconds) < 1
        host.end()
    for peer in peers:
        peer.end()


# ---- who asks badly ---------------------------------------------------------

REQUEST = b'GET /metrics HTTP/1.1\r\nHost: x\r\n'


def open_fds(agent):
    return len(os.listdir('/proc/%d/fd' % agent.process.pid))


def resident(agent):
    return int(web.Metrics(agent.web)['process_resident_memory_bytes']) >> 10


def drip(socks):
    """A byte to each that is still open; those that are."""
    return [s for s in socks if web.send(s, b'x') and not gone(s)]


def gone(sock):
    sock.setblocking(False)
    try:
        return sock.recv(4096) == b''
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_who_asks_badly_is_cut_and_delays_no_id(lab):
    agent = served(lab, lab.realm()).up()
    quiet = lab.load(agent, threads=4, rate=500, timeout=30000)
    quiet.takes(500)
    quiet = quiet.stop()
    fds, memory = open_fds(agent), resident(agent)
    load = lab.load(agent, threads=4, rate=500, timeout=30000).takes(100)

    # a byte now and then is no reason to stay
    begun = time.monotonic()
    slow = []
    for head in (b'', b'GE', REQUEST, REQUEST + b'X: y'):
        sock = web.connect(agent.web)
        assert web.send(sock, head)
        slow.append(sock)
    wait.until(lambda: drip(slow) == [], 10, 'slow ones to be cut', 0.3)
    print('a byte now and then lasts for %.1f s' % (time.monotonic() - begun))

    # a hundred say nothing: there are 16, and the next one gets its answer
    idle, most = [], 0
    for _ in range(100):
        idle.append(web.connect(agent.web))
        most = max(most, open_fds(agent))
    wait.until(lambda: sum(not gone(sock) for sock in idle) <= 16, 10,
               'all but 16 to be cut')
    print('%d descriptors, %d before' % (most, fds))
    assert most <= fds + 16 + 32  # those of the load, and what is closing
    assert web.ask(agent.web, '/healthz').status == 200

    # headers without an end, a body, many requests in one, no reading
    for head, tail in ((REQUEST + b'X: ', b'y' * (1 << 20)),
                       (b'GET /' + b'y' * 5000, b'y' * (1 << 20)),
                       (REQUEST, b'X: y\r\n' * (1 << 17)),
                       (b'\0\xff\r\n\r\n', b'\0' * (1 << 20)),
                       (b'POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n',
                        b'y' * (1 << 20)),
                       (b'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n'
                        b'\r\nfffff\r\n', b'y' * (1 << 20)),
                       (REQUEST + b'\r\n', (REQUEST + b'\r\n') * 20000)):
        sock = web.connect(agent.web)
        web.send(sock, head)
        web.send(sock, tail)
        assert web.closed(sock), head[:40]
    unread = [web.connect(agent.web, receive=1) for _ in range(16)]
    for sock in unread:
        web.send(sock, REQUEST + b'\r\n')
    for _ in range(200):
        web.connect(agent.web).close()
    for name in (b'\0' + b'n' * 107, (agent.base + '.c').ljust(100, 'n')):
        sock = socket.socket(socket.AF_UNIX)  # libevent asks for its name
        sock.bind(name)
        sock.connect(agent.web)
        web.send(sock, b'GET /healthz HTTP/1.0\r\n\r\n')
        assert web.closed(sock)
    check_metrics(web.ask(agent.web, '/metrics').text)

    # nothing of all that is left, and nobody noticed
    wait.until(lambda: open_fds(agent) <= fds + 4 + 4, 10,
               lambda: '%d descriptors, %d before' % (open_fds(agent), fds))
    after = resident(agent)
    print('resident %d KiB before, %d KiB after' % (memory, after))
    assert after < memory + 65536
    load.takes(100)
    result = load.stop()
    print('longest call %s ms alone, %s ms beside this' % (
        quiet['longest_ms'], result['longest_ms']))
    assert result['failed'] == 0, result
    check([lab.loads[0], load])


def test_scrapes_without_a_pause(lab):
    """As fast as they go, and the IDs' latencies beside that."""
    agent = served(lab, lab.realm()).up()
    load = lab.load(agent, threads=2, rate=500, timeout=30000).takes(100)
    begun, n = time.monotonic(), 0
    while n < 300:
        assert web.ask(agent.web, '/metrics').status == 200
        n += 1
    seconds = time.monotonic() - begun
    result = load.stop()
    print('%d scrapes in %.2f s; longest call %s ms' % (
        n, seconds, result['longest_ms']))
    assert result['failed'] == 0
    check([load])


def test_one_agent_speaks_for_the_fleet(lab):
    """With the values of its summary, which all of them show."""
    realm = lab.realm()
    conf = dict(QUICK, audit_ms=1000)
    agents = [served(lab, realm, conf).start() for _ in range(3)]
    for agent in agents:
        agent.serving()

    def of_all(n):
        reply = web.ask(agents[n].web, '/fleet')
        return reply.status == 200 and reply.json['agents']['all'] == 3 and reply
    reply = wait.until(lambda: of_all(0) and of_all(1) and of_all(2), 30,
                       'a summary of all three')
    assert reply.headers['Content-Type'] == 'application/json'

    def one():
        seen = [web.Metrics(agent.web) for agent in agents]
        own = [m for m in seen if m['firn_auditor'] == 1]
        others = [m for m in seen if m['firn_auditor'] == 0]
        return len(own) == 1 and own[0].get(
            'firn_fleet_agents{state="serving"}') == 3 and (own[0], others)
    m, others = wait.until(one, 30, 'one auditor')
    page = web.ask(agents[0].web, '/')
    assert page.headers['Content-Type'] == 'text/html; charset=utf-8'
    assert "default-src 'none'" in page.headers['Content-Security-Policy']
    assert '<dt>Agents<dd>3<' in page.text, page.text
    nonce = re.search("script-src 'nonce-([0-9a-f]{32})'",
                      page.headers['Content-Security-Policy']).group(1)
    assert page.text.count('nonce="%s"' % nonce) == 2
    assert nonce not in web.ask(agents[0].web, '/').text

    def rows():
        doc = web.ask(agents[2].web, '/agents').json
        return doc['whole'] and len(doc['agents']) == 3 and doc
    doc = wait.until(rows, 20, 'all of them, read by one that is asked')
    assert doc['realm'] == realm.name and doc['more'] == 0
    assert {a['worker'] for a in doc['agents']} == {
        a.worker() for a in agents}
    for a in doc['agents']:
        assert (a['level'], a['state'], a['reason']) == ('good', 'serving', '')
        assert 0 <= a['age_ms'] < 60000 and 0 < a['left_ms'] <= 20500
    # only while somebody asks, and not the more the more he asks
    assert 'roll: ' not in agents[1].log()
    asked, begun = agents[2].log().count('roll: '), time.monotonic()
    for _ in range(100):
        assert web.ask(agents[2].web, '/agents').status == 200
    seconds = time.monotonic() - begun
    read = agents[2].log().count('roll: ') - asked
    print('100 questions in %.2f s: %d readings' % (seconds, read))
    assert read <= seconds / 0.5 + 2
    check_metrics(m.text)
    assert sum(m['firn_fleet_workers{state="%s"}' % s]
               for s in ('taken', 'quarantined', 'free')) == 1024
    assert m['firn_fleet_workers{state="taken"}'] == 3
    assert m['firn_fleet_duplicate_claims'] == 0
    assert 0 <= m['firn_fleet_clock_spread_seconds'] < 60
    assert abs(m['firn_fleet_clock_offset_seconds']) < 60
    assert 0 <= m['firn_audit_duration_seconds'] < 60
    assert len(others) == 2
    for other in others:  # each figure is told once
        assert not [key for key in other.samples if 'firn_fleet' in key]
        assert other.get('firn_audit_duration_seconds') is None


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


def test_a_unix_socket_that_was_removed_is_made_again(lab):
    """The same one to whoever asks: mode, lock and all; what somebody else
    has put there is left alone, and said once."""
    agent = served(lab, lab.realm()).up()
    for leave_lock in (True, False):
        before = os.stat(agent.web)
        os.unlink(agent.web)
        if not leave_lock:
            os.unlink(agent.web + '.lock')
        wait.until(lambda: os.path.exists(agent.web), 10, 'another socket')
        after = os.stat(agent.web)
        assert stat.S_ISSOCK(after.st_mode) and after.st_mode == before.st_mode
        assert os.path.exists(agent.web + '.lock')
        for _ in range(3):
            assert web.ask(agent.web, '/healthz').text == 'ok\n'
    assert agent.log().count('%s: it was removed, and is made again'
                             % agent.web) == 2
    fds = open_fds(agent)
    os.unlink(agent.web)
    with open(agent.web, 'w') as f:
        f.write('mine')
    wait.until(lambda: 'something else has taken its place' in agent.log(),
               10, agent.tail)
    os.unlink(agent.web)
    wait.until(lambda: os.path.exists(agent.web) and stat.S_ISSOCK(
        os.stat(agent.web).st_mode), 10, 'another socket')
    assert web.ask(agent.web, '/readyz').status == 200
    wait.until(lambda: open_fds(agent) <= fds + 2, 10, 'none is lost')
    assert agent.log().count('something else has taken its place') == 1
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
