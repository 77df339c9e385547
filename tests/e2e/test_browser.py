# SPDX-License-Identifier: Apache-2.0
"""The fleet page in a browser: headless Chromium, driven by playwright-core.

With FIRN_SCREENSHOT=FILE.png the first test leaves a picture there: the one
in README.md is made so (make check-e2e PYTEST_FLAGS='-k page_of_a_fleet').
"""
import json
import os
import shutil
import statistics
import subprocess
import time
import urllib.request

import pytest

from firnlab import wait
from firnlab.build import BUILD, SOURCE
from firnlab.jute import EPHEMERAL, SEQUENTIAL
from firnlab.process import SETPRIV, free_port

pytestmark = pytest.mark.browser

MANY = 1000
SWIFT = {'renew_ms': 1000, 'op_deadline_ms': 800, 'audit_ms': 1000}


def modules():
    """Where the driver is, with its modules as the lock file says: in the
    build directory, never in the source tree."""
    for tool in ('node', 'npm', 'chromium'):
        assert shutil.which(tool), 'no %s (Debian packages nodejs, npm, ' \
            'chromium)' % tool
    source, home = SOURCE + '/tests/browser', BUILD + '/browser'
    os.makedirs(home, exist_ok=True)
    with open(source + '/package-lock.json', 'rb') as f:
        lock = f.read()
    for name in ('package.json', 'package-lock.json', 'page.mjs'):
        shutil.copyfile('%s/%s' % (source, name), '%s/%s' % (home, name))
    mark = home + '/installed'
    if not os.path.exists(mark) or open(mark, 'rb').read() != lock:
        done = subprocess.run(
            ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'],
            cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=300)
        assert done.returncode == 0, done.stdout
        with open(mark, 'wb') as f:
            f.write(lock)
    return home


class Browser:
    """page.mjs, one question at a time."""

    def __init__(self, directory):
        argv = ['node', modules() + '/page.mjs', shutil.which('chromium'),
                directory + '/profile']
        if SETPRIV:
            argv = [SETPRIV, '--pdeathsig', 'KILL'] + argv
        self.log = open(directory + '/browser.log', 'ab')
        home = directory + '/home'  # of what Chromium keeps besides
        os.makedirs(home, exist_ok=True)
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.log, text=True, start_new_session=True,
            env=dict(os.environ, HOME=home, XDG_CONFIG_HOME=home,
                     XDG_CACHE_HOME=home))

    def do(self, verb, **options):
        self.process.stdin.write(json.dumps(dict(options, do=verb)) + '\n')
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or
                            '{"error": "the browser is gone"}')
        assert 'error' not in answer, answer['error']
        return answer['ok']

    def until(self, condition, seconds, what):
        seen = {}

        def look():
            seen['page'] = self.do('look')
            return condition(seen['page']) and seen['page']
        return wait.until(look, seconds, lambda: '%s: %s' % (what, seen), 0.1)

    def is_clean(self, url):
        """Nothing went wrong in this page, and it asked nobody else."""
        told = self.do('told')
        assert told['console'] == told['errors'] == told['failed'] == [], told
        outside = [r for r in told['requests']
                   if not r.startswith((url, 'data:'))]
        assert not outside, outside
        return told['requests']

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()


@pytest.fixture
def browser(lab):
    b = Browser(lab.dir)
    yield b
    b.close()


def serves_page(agent):
    port = free_port()
    agent.conf['http'] = '127.0.0.1:%d' % port
    agent.up()
    return 'http://127.0.0.1:%d/' % port


def row_of(page, worker):
    rows = [r for r in page['rows'] if r['cells'][1] == str(worker)]
    return rows[0] if len(rows) == 1 else None


def test_the_page_of_a_fleet(lab, browser):
    """One's clock goes 11 s back: its row is red and the first, and an alert
    stands above; put right, it is as it was."""
    realm = lab.realm(name='orders')
    hosts = [lab.host(realm, 0.004 * i, conf=SWIFT) for i in range(3)]
    if os.geteuid() == 0:  # names of their own, for the picture
        for i, host in enumerate(hosts):
            host.launcher = ['unshare', '--uts', 'sh', '-c',
                             'hostname ids-%d.example.com; exec "$@"' % (
                                 i + 1), 'sh']
    url = serves_page(hosts[0])
    for host in hosts[1:]:
        host.up()
    load = lab.load(hosts[1], rate=300)
    for host in hosts:
        host.wait_status(lambda d: d['peers'] == 2, 30, 'two peers')
    workers = [h.worker() for h in hosts]
    policy = browser.do('open', url=url)['policy']
    page = browser.until(
        lambda p: len(p['rows']) == 3 and all(
            r['level'] == 'good' for r in p['rows']) and
        p['figures'][0][1] == '3', 40, 'three good rows')
    loaded = page['loads']
    assert page['rows'] == sorted(page['rows'],
                                  key=lambda r: int(r['cells'][1]))
    for r in page['rows']:
        assert r['cells'][0].split() == ['serving'], r
        assert 0 <= int(r['cells'][5]) <= 61, r
        # zero, 0.5 s and 10 s on both sides, as far as roots are apart
        at = dict((kind, sorted(x for k, x in r['lines'] if k == kind))
                  for kind in ('zero', 'half', 'ten'))
        assert at['zero'] == [0] and at['half'][0] == -at['half'][1]
        assert at['ten'][1] / at['half'][1] == pytest.approx(20 ** 0.5)
        assert abs(r['bar'][0][0]) < at['half'][1] > r['bar'][0][1]
    browser.until(lambda p: row_of(p, workers[1])['cells'][6] not in (
        '0', '–'), 30, 'the load is seen')
    for dark in (False, True):
        found = browser.do('axe', dark=dark)
        assert found['violations'] == [] and found['rules'] > 15, found
        # it cannot tell what is behind texts in a drawing
        assert all(u.startswith('color-contrast: <text')
                   for u in found['unsure']), found

    begun = time.monotonic()
    hosts[2].clock.step(-11)
    page = browser.until(
        lambda p: p['rows'][0]['level'] == 'bad', 15, 'a red row')
    print('\nred %.1f s after the clock moved' % (time.monotonic() - begun))
    assert page['loads'] == loaded  # no other page, the same one
    red = page['rows'][0]
    assert red['cells'][1] == str(workers[2])
    assert red['cells'][0].startswith('refusing'), red
    page = browser.until(
        lambda p: 'clock_skew' in p['rows'][0]['cells'][0] and
        any('clock_skew' in a[1] for a in p['alerts']) and
        any('fleet_skew' in a[1] for a in p['alerts']), 40,
        'the skew and its alerts')
    red = page['rows'][0]
    assert red['cells'][3].startswith('−1'), red
    assert red['bar'][0][0] < min(x for k, x in red['lines'])  # over 10 s
    assert red['back'] != page['rows'][1]['back']
    assert page['alerts'][0][0] == 'critical'
    assert page['alerts'][-1][0] == 'warning'
    assert page['title'].startswith('(2) ') and 'orders' in page['title']
    assert page['figures'][1][1] == '1', page['figures']
    for dark in (False, True):
        found = browser.do('axe', dark=dark)
        assert found['violations'] == [], found
    picture = os.environ.get('FIRN_SCREENSHOT', '')
    for name, options in (('light', {}), ('dark', {'dark': True}),
                          ('narrow', {'width': 400, 'whole': True})):
        path = '%s/%s.png' % (lab.dir, name)
        browser.do('shot', path=path, **dict({'height': 450}, **options))
        assert os.path.getsize(path) > 5000
        if picture:
            shutil.copyfile(path, picture if name == 'light' else
                            '%s-%s.png' % (picture[:-4], name))
    narrow = browser.do('look')
    assert narrow['scroll'] == 0  # the table scrolls, the page does not
    print('seen at %.1f s' % (time.monotonic() - begun))
    requests = browser.is_clean(url)
    assert len(requests) > 5 and len([r for r in requests if r == url]) == 1

    hosts[2].clock.step(11)
    browser.until(lambda p: all(r['level'] == 'good' for r in p['rows']) and
                  p['alerts'][0][0] == 'none', 40, 'all is well')
    print('well at %.1f s' % (time.monotonic() - begun))
    # nothing of the page's own is stopped by the policy; all else is
    for part in ("default-src 'none'", "connect-src 'self'",
                 "base-uri 'none'", "frame-ancestors 'none'"):
        assert part in policy, policy
    assert 'unsafe' not in policy
    browser.is_clean(url)
    stopped = set(browser.do('inject'))
    assert stopped >= {'innerHTML', 'style-src-elem', 'connect-src',
                       'img-src'}, stopped

    # without a script: a plain table that the browser loads again
    policy_now = browser.do('open', url=url, script=False)['policy']
    assert policy_now != policy  # another nonce
    html = browser.do('html')
    assert '<meta http-equiv="refresh"' in html
    heads = browser.do('texts', at='thead th')
    assert len(heads) == 8 and heads[2] == 'Host', heads
    cells = browser.do('texts', at='#rows tr > *')
    assert len(cells) == 3 * 8, cells
    assert sorted(int(c) for c in cells[1::8]) == sorted(workers)
    browser.is_clean(url)

    print('plain at %.1f s' % (time.monotonic() - begun))
    # an agent that is gone is said to be, and what was seen stays
    browser.do('open', url=url)
    browser.until(lambda p: len(p['rows']) == 3, 30, 'rows')
    hosts[0].kill()
    page = browser.until(lambda p: p['old'], 20, 'it is said to be old')
    assert 'has not answered for' in page['note'] and len(page['rows']) == 3
    load.stop()


def make_fleet(realm, usable):
    """A thousand claims and marks as agents would have left them; the
    connection, which keeps them."""
    zoo = realm.server.client(60)
    now_ms = int(time.time() * 1000)
    tick = now_ms + 59000 - realm.contract_epoch
    for i in range(MANY):
        path = zoo.create('%s/%08x-0000-4000-8000-%012x-w-' % (
            realm.claims_path_now, i, i), b'', EPHEMERAL | SEQUENTIAL)
        name = path.rsplit('/', 1)[1]
        worker = int(name[-10:]) % usable
        boot = '%08x-1111-4000-8000-%012x' % (i, i)
        doc = {'ceiling_tick': str(tick), 'owner': name, 'tag': '%032x' % i,
               'status': {'state': 'serving', 'reason': '',
                          'host': 'ids-%04d.example.com' % i,
                          'version': '1.0.0', 'pid': 100 + i,
                          'boot_id': boot, 'ids_per_s': 10 * i,
                          'offset_us': str(i * 7), 'error_us': '400',
                          'stamp_ms': str(now_ms), 'epoch': '0',
                          'skew_us': str(i * 7 - 3500)}}
        zoo.create('%s/%04d' % (realm.marks_path_now, worker),
                   json.dumps(doc).encode())
    return zoo


def test_a_thousand_agents_stay_smooth(lab, browser):
    """Read by an agent from a real ZooKeeper; then each of their figures
    changes with each update."""
    realm = lab.realm('--first', '--agents', '1500')
    contract = realm.contract()
    realm.claims_path_now = realm.claims_path
    realm.marks_path_now = realm.marks_path
    realm.contract_epoch = int(contract['epoch_ms'])
    usable = contract['workers']['last'] - contract['workers']['first'] + 1
    with make_fleet(realm, usable):
        agent = lab.agent(realm)
        url = serves_page(agent)
        browser.do('open', url=url)
        page = browser.until(lambda p: len(p['rows']) == MANY + 1, 40,
                             'all rows')
        assert page['more'] == ''
        took = [line.rsplit('roll: ', 1)[1] for line in
                agent.log().splitlines() if 'roll: ' in line]
        print('read by the agent: ' + took[0])
        begun = time.monotonic()
        for _ in range(20):
            with urllib.request.urlopen(url + 'agents', timeout=60) as reply:
                size = len(reply.read())
        print('an answer of %d bytes takes %.1f ms' % (
            size, (time.monotonic() - begun) * 1000 / 20))
        browser.do('shake')
        seen = browser.do('measure', updates=4)
        browser.until(lambda p: [r['level'] for r in p['rows'][:3]] ==
                      ['bad'] * 3, 20, 'three in trouble, above')
        updates, frames = seen['updates'], seen['frames']
        print('an update of %d rows, all figures changed: the script has the '
              'page for %.1f ms (median), '
              'longest %.1f ms; of %d frames the longest %s ms' % (
                  MANY + 1, statistics.median(updates), max(updates),
                  len(frames), [round(f) for f in sorted(frames)[-8:]]))
        # the page asks every 2 s: it must be far from busy all the time
        assert statistics.median(updates) < 1000
        browser.is_clean(url)
