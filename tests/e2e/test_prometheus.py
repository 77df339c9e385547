# SPDX-License-Identifier: Apache-2.0
"""From an agent's clock to the pager: Debian's Prometheus and Alertmanager
with the rules as they are shipped; only the intervals are shorter."""
import http.server
import json
import re
import shutil
import threading
import time
import urllib.request

from firnlab import wait
from firnlab.build import SOURCE
from firnlab.process import Process, free_port

SWIFT = {'renew_ms': 1000, 'op_deadline_ms': 800, 'audit_ms': 1000}
RULES = SOURCE + '/contrib/prometheus/firn.rules.yml'

PROMETHEUS = '''
global: {scrape_interval: 1s, evaluation_interval: 1s, scrape_timeout: 1s}
rule_files: [%(rules)s]
scrape_configs:
  - job_name: firn
    static_configs: [{targets: %(targets)s}]
alerting:
  alertmanagers:
    - static_configs: [{targets: ['127.0.0.1:%(alertmanager)d']}]
'''
ALERTMANAGER = '''
route: {receiver: pager, group_by: [alertname, instance], group_wait: 0s,
        group_interval: 1s, repeat_interval: 1h}
receivers:
  - name: pager
    webhook_configs: [{url: 'http://127.0.0.1:%d/', send_resolved: true}]
'''


class Pager:
    """Takes what Alertmanager sends."""

    def __init__(self):
        pager = self
        self.alerts = []  # as they came, with the time

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                size = int(self.headers['Content-Length'])
                doc = json.loads(self.rfile.read(size))
                pager.alerts += [dict(a, at=time.monotonic())
                                 for a in doc['alerts']]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def find(self, name, status, since=0.0, **labels):
        for a in list(self.alerts):
            if (a['labels']['alertname'], a['status']) == (name, status) \
                    and a['at'] >= since and labels.items() <= \
                    a['labels'].items():
                return a
        return None

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Watch:
    """Prometheus and Alertmanager, with all of theirs in one directory."""

    def __init__(self, directory, targets, pager):
        for tool in ('prometheus', 'prometheus-alertmanager'):
            assert shutil.which(tool), 'no %s (a Debian package)' % tool
        self.port, port = free_port(), free_port()
        self.write(directory + '/prometheus.yml', PROMETHEUS % {
            'rules': RULES, 'targets': targets, 'alertmanager': port})
        self.write(directory + '/alertmanager.yml', ALERTMANAGER % pager.port)
        self.processes = [
            Process(['prometheus-alertmanager', '--cluster.listen-address=',
                     '--config.file', directory + '/alertmanager.yml',
                     '--storage.path', directory + '/alertmanager',
                     '--web.listen-address', '127.0.0.1:%d' % port,
                     '--log.level=warn'], directory + '/alertmanager.log'),
            Process(['prometheus', '--config.file',
                     directory + '/prometheus.yml', '--storage.tsdb.path',
                     directory + '/tsdb', '--web.listen-address',
                     '127.0.0.1:%d' % self.port, '--log.level=warn'],
                    directory + '/prometheus.log')]

    @staticmethod
    def write(path, text):
        with open(path, 'w') as f:
            f.write(text)

    def ask(self, path):
        """Its answer's data; None while it does not answer."""
        for p in self.processes:
            assert p.running(), p.text()[-2000:]
        try:
            with urllib.request.urlopen('http://127.0.0.1:%d/api/v1/%s' % (
                    self.port, path), timeout=30) as reply:
                return json.load(reply)['data']
        except OSError:
            return None

    def rules(self):
        data = self.ask('rules') or {'groups': []}
        return [r for g in data['groups'] for r in g['rules']]

    def firing(self):
        return sorted((a['labels']['alertname'], a['labels'].get('instance'))
                      for a in (self.ask('alerts') or {'alerts': []})['alerts']
                      if a['state'] == 'firing')

    def close(self):
        for p in self.processes:
            p.kill()


def up_at_port(agent):
    agent.conf['http'] = '127.0.0.1:%d' % free_port()
    return agent.start()


def test_a_clock_that_moved_reaches_the_pager(lab):
    """And so does its end, once the clock is put right."""
    realm = lab.realm()
    hosts = [up_at_port(lab.host(realm, conf=SWIFT)) for _ in range(3)]
    pager = Pager()
    watch = Watch(lab.dir, [h.conf['http'] for h in hosts], pager)
    try:
        follow(realm, hosts, pager, watch)
    finally:
        watch.close()
        pager.close()


def follow(realm, hosts, pager, watch):
    for host in hosts:
        host.serving().wait_status(lambda d: d['peers'] == 2, 30, 'two peers')
    bad = hosts[2]
    instance = bad.conf['http']
    wait.until(lambda: len(watch.rules()) >= 20 and all(
        r['health'] == 'ok' for r in watch.rules()), 40,
        lambda: 'all rules evaluated: %s' % [
            (r['name'], r['health'], r.get('lastError'))
            for r in watch.rules() if r['health'] != 'ok'])

    def realms():
        data = watch.ask('query?query=instance_realm:firn_agent_info:max')
        return [s['metric']['realm'] for s in data['result']]
    wait.until(lambda: realms() == [realm.name] * 3, 20, realms)
    wait.until(lambda: watch.firing() == [], 20, watch.firing)

    begun = time.monotonic()
    bad.clock.step(-11)

    def arrived(name, status, since, **labels):
        return wait.until(
            lambda: pager.find(name, status, since, **labels), 30,
            lambda: '%s %s; had %s; firing %s' % (name, status, [
                (a['labels'], a['status']) for a in pager.alerts],
                watch.firing()))
    step = arrived('FirnClockStep', 'firing', 0, instance=instance)
    alert = arrived('FirnSkewRefuse', 'firing', 0, instance=instance)
    fleet = arrived('FirnFleetSkew', 'firing', 0, realm=realm.name)
    print('\nat the pager after %.1f s (the step), %.1f s (refused by its '
          'skew), %.1f s (the fleet)' % tuple(
              a['at'] - begun for a in (step, alert, fleet)))
    assert alert['labels'] == {
        'alertname': 'FirnSkewRefuse', 'instance': instance, 'job': 'firn',
        'kind': 'skew_refuse', 'severity': 'critical'}
    assert instance in alert['annotations']['summary']
    assert fleet['labels'] == {
        'alertname': 'FirnFleetSkew', 'realm': realm.name,
        'kind': 'fleet_skew', 'severity': 'warning'}
    for a in (step, alert, fleet):  # each names a part that there is
        path, anchor = a['annotations']['runbook'].split('#')
        with open('%s/%s' % (SOURCE, path)) as f:
            assert re.search('^## %s$' % anchor, f.read(), re.M), anchor
    for other in hosts[:2]:
        assert not pager.find('FirnSkewRefuse', 'firing',
                              instance=other.conf['http']), pager.alerts

    repaired = time.monotonic()
    bad.clock.step(11)
    end = arrived('FirnSkewRefuse', 'resolved', repaired, instance=instance)
    print('resolved after %.1f s' % (end['at'] - repaired))
    assert end['fingerprint'] == alert['fingerprint']
    bad.wait_status(lambda d: d['state'] == 'serving', 20, 'serves again')
