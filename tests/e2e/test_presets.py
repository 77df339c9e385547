# SPDX-License-Identifier: Apache-2.0
"""Every layout, end to end: realm, agent, stub, and the IDs taken apart here
by hand; several realms in one ID space; what is said and done near a layout's
end; numbers that JavaScript reads.
"""
import json
import re
import subprocess
import time

import pytest

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import clean_env, firn
from firnlab.web import ask

EPOCH_MS = 1735689600000  # 2025-01-01
DAY_MS = 86400000

# text, bits of time, worker, sequence; above; tick; epoch
LAYOUTS = [
    ('firn', 41, 10, 12, False, 1, EPOCH_MS),
    ('twitter', 41, 10, 12, False, 1, 1288834974657),
    ('discord', 42, 10, 12, False, 1, 1420070400000),
    ('instagram', 41, 13, 10, False, 1, 1314220021721),
    ('sonyflake', 39, 16, 8, True, 10, 1409529600000),
    ('js53', 38, 7, 8, False, 10, EPOCH_MS),
    ('41/s12/w10', 41, 10, 12, True, 1, EPOCH_MS),
    ('39/8/17@10ms', 39, 8, 17, False, 10, EPOCH_MS),
    ('32/10/12@1s', 32, 10, 12, False, 1000, EPOCH_MS),
    ('32/s12/w20@1s', 32, 20, 12, True, 1000, EPOCH_MS),
]


def parts(layout, number):
    """(milliseconds, worker, sequence) of an ID, by division."""
    _, time_bits, worker, sequence, above, tick, epoch = layout
    low, high = (worker, sequence) if above else (sequence, worker)
    number, first = divmod(number, 1 << low)
    ticks, second = divmod(number, 1 << high)
    assert ticks < 1 << time_bits
    worker, sequence = (first, second) if above else (second, first)
    return epoch + ticks * tick, worker, sequence


def take(agent, n=40):
    result = firn('next', '-n', n, '--timeout', 20000, '--socket',
                  agent.socket)
    return [int(line) for line in result.out.split()]


def zk(lab, name):
    return ('--zk', lab.server.hosts, '--realm', name)


@pytest.mark.short
def test_every_layout_end_to_end(lab):
    realms = [lab.realm('--first', '--layout', layout[0])
              for layout in LAYOUTS]
    agents = [lab.agent(realm, conf=dict(QUICK, layout=layout[0])).start()
              for realm, layout in zip(realms, LAYOUTS)]
    for agent, layout in zip(agents, LAYOUTS):
        tick = layout[5]
        agent.serving()
        worker = agent.worker()
        before_ms = time.time() * 1000
        numbers = take(agent) + take(agent)
        after_ms = time.time() * 1000
        assert numbers == sorted(set(numbers)), layout[0]
        for number in numbers:
            ms, its_worker, _ = parts(layout, number)
            assert its_worker == worker, layout[0]
            # a tick held, or borrowed: one, or 5 ms of them
            assert before_ms - tick - 1000 < ms < after_ms + tick + 1000
        # the agent says the layout, and the command goes by it
        docs = firn('decode', '--json', '--socket', agent.socket,
                    *numbers).json
        for doc, number in zip(docs, numbers):
            assert doc['id'] == str(number)
            assert (int(doc['unix_ms']), doc['worker'], doc['sequence']) == (
                parts(layout, number)), layout[0]
        status = agent.status()
        assert status['epoch_ms'] == str(layout[6])
        assert status['tick_ms'] == tick
        floor = int(firn('floor', docs[0]['time'], '--socket',
                         agent.socket).out)
        assert parts(layout, floor) == (int(docs[0]['unix_ms']), 0, 0)


def test_datacenters_share_an_id_space(lab):
    """Two realms of one layout, a datacenter each: no number twice."""
    realms = [lab.realm('--first', '--layout', 'twitter', '--datacenter', n)
              for n in (3, 7)]
    for realm, first in zip(realms, (96, 224)):
        workers = realm.contract()['workers']
        assert (int(workers['first']), int(workers['last'])) == (
            first, first + 31)
    agents = [lab.agent(r, conf=QUICK).start() for r in realms for _ in '12']
    numbers = []
    for i, agent in enumerate(agents):
        agent.serving()
        got = take(agent, 500)
        assert {parts(LAYOUTS[1], n)[1] >> 5 for n in got} == {(3, 7)[i // 2]}
        numbers += got
    assert len(set(numbers)) == len(numbers)
    for words, why in (
            ('--layout twitter --datacenter 32', 'none above 31'),
            ('--layout firn --datacenter 0', 'no bits for it'),
            ('--layout twitter --datacenter 1 --workers 0-9', 'exclude')):
        result = firn('realm', 'create', '--first', *words.split(),
                      *zk(lab, 'never'), status=64)
        assert why in result.err
    # the same again fits, another datacenter does not
    name = realms[0].name
    firn('realm', 'create', '--first', '--if-missing', '--datacenter', 3,
         '--layout', 'twitter', *zk(lab, name))
    result = firn('realm', 'create', '--first', '--if-missing',
                  '--datacenter', 4, '--layout', 'twitter', *zk(lab, name),
                  status=78)
    assert 'another range of worker IDs' in result.err


def test_agents_get_the_smallest_field(lab):
    """With a quarter to spare; what that leaves is printed."""
    out = firn('realm', 'create', '--first', '--agents', 96,
               *zk(lab, 'ninety-six')).out
    assert '41/7/15' in out
    assert re.search(r'^to spare +32 of 128 worker IDs', out, re.M)
    assert re.search(r'^leaves +15 bits .*: 32768000 IDs a second', out, re.M)
    out = firn('realm', 'create', '--first', '--agents', 97,
               *zk(lab, 'ninety-seven')).out
    assert '41/8/14' in out


@pytest.mark.parametrize('epoch, why', [
    ('2999-01-01', '2999-01-01T00:00:00.000Z lies in the future'),
    ('2025-01-01T00:00:00', 'names no time zone'),
    ('2025-01-01 00:00:00', 'names no time zone'),
])
def test_epochs_that_are_refused(lab, epoch, why):
    result = firn('realm', 'create', '--first', '--epoch', epoch,
                  *zk(lab, 'never'), status=64)
    assert why in result.err and len(result.err.splitlines()) == 1
    assert 'epoch' in firn('plan', '--epoch', epoch, status=64).err


def test_a_year_before_the_end_and_past_it(lab):
    """Alert and metrics name the last instant and the day that the sign bit
    turns; past the end, or before the epoch, an agent refuses."""
    now_ms = int(time.time() * 1000)
    ends = now_ms + 100 * DAY_MS
    conf = dict(QUICK, audit_ms=1000)
    cases = []
    for bits, epoch, sign in (
            ('40/10/12', ends - 2**40, None),
            ('40/11/13', ends - 2**39, ends)):  # half of the field
        last = epoch + 2**40
        realm = lab.realm('--first', '--bits', bits, '--epoch', str(epoch))
        web = '%s/web%d' % (lab.dir, len(cases))
        agent = lab.agent(realm, conf=dict(conf, http='unix:' + web)).start()
        cases.append((realm, agent, web, last, sign))
    alone = [lab.agent('default', hosts='127.0.0.1:1', conf={
        'worker_source': 'static', 'static_worker': i, 'layout': '30/10/12',
        'epoch': epoch}).start('--first-use')
        for i, epoch in enumerate(('2001-01-01T00:00:00Z',
                                   '2999-01-01T00:00:00Z'))]
    for realm, agent, web, last, sign in cases:
        agent.serving()

        def alert():
            doc = firn('fleet', '--json', *zk(lab, realm.name)).json
            return [a for a in doc['alerts'] if a['kind'] == 'epoch_ending']
        told = wait.until(alert, 30, agent.tail)
        assert len(told) == 1 and told[0]['severity'] == 'warning'

        def text(ms):
            return time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(ms // 1000))
        assert text(last) in told[0]['text']
        assert ('negative' in told[0]['text']) == (sign is not None)
        if sign:
            assert text(sign) in told[0]['text']
        metrics = ask(web, '/metrics').text
        found = dict(re.findall(
            r'^(firn_layout_[a-z_]+) ([0-9.e+]+)$', metrics, re.M))
        assert abs(float(found['firn_layout_end_timestamp_seconds'])
                   - last / 1000) < 1
        assert ('firn_layout_sign_timestamp_seconds' in found) == (
            sign is not None)
        # the plan has the same instants, without an agent
        doc = firn('plan', '--bits', realm_bits(realm), '--epoch',
                   realm.contract()['epoch_ms'], '--json').json
        assert int(doc['last_ms']) == last - 1
        assert (doc['sign_bit'] or '').startswith(text(sign) if sign else '')
    for agent, reason in zip(alone, ('epoch_ended', 'before_epoch')):
        agent.refuses(reason, 20)
        result = firn('next', '--timeout', 300, '--socket', agent.socket,
                      status=75)
        assert reason in result.err and re.search(r'2\d\d\d-\d\d-', result.err)
    result = firn('realm', 'create', '--first', '--bits', '30/10/12',
                  '--epoch', '2001-01-01', *zk(lab, 'ended'), status=64)
    assert 'ended at 2001-01-13' in result.err


def realm_bits(realm):
    layout = realm.contract()['layout']
    return '%d/%d/%d' % tuple(layout[k + '_bits'] for k in
                              ('time', 'worker', 'sequence'))


# ---- the plan -----------------------------------------------------------------

def test_plan_without_an_agent():
    """The table of limits, and the published odds."""
    out = firn('plan').out
    bar = re.search(r'^ +([-TWS]{64})$', out, re.M).group(1)
    assert bar == '-' + 41 * 'T' + 10 * 'W' + 12 * 'S'
    doc = firn('plan', '--layout', 'discord', '--json').json
    assert doc['last'] == '2154-05-15T07:35:11.103Z'
    assert doc['sign_bit'] == '2084-09-06T15:47:35.552Z'
    doc = firn('plan', '--layout', 'twitter', '--json').json
    assert doc['last'] == '2080-07-10T17:30:30.208Z'
    assert doc['sign_bit'] is None
    odds = {k['kind']: int(k['one_in']) for k in doc['odds']['kinds']}
    assert round(odds['UUIDv4'], -10) == 10 * 10**9
    assert odds['ULID'] == 77 * 10**6 and odds['UUIDv7'] == 12 * 10**5
    doc = firn('plan', '--layout', 'js53', '--json').json
    assert doc['passes_2_53'] is None and doc['last'].startswith('2112-')
    assert 'exact in JavaScript until 2112' in firn('plan', '--layout',
                                                    'js53').out
    for words in (['--bits', '41/10/14'], ['--for', '1w'], ['--rate', '0'],
                  ['--agents', '3', '--layout', 'firn'], ['--agents', '9e9']):
        assert len(firn('plan', *words, status=64).err.splitlines()) == 1


# ---- JavaScript ---------------------------------------------------------------

ROUND = '''
const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const out = texts.map(t => JSON.stringify(JSON.parse(t)));
process.stdout.write(JSON.stringify(out));
'''


def through_node(script, text):
    done = subprocess.run(['node', '-e', script], input=text, text=True,
                          stdout=subprocess.PIPE, check=True, timeout=60,
                          env=clean_env())
    return done.stdout


def test_javascript_loses_nothing(lab):
    """Every document of the command and the agent comes back from JSON.parse
    as it was: what a double would spoil is a string.  js53's IDs are exact as
    numbers too."""
    realm = lab.realm('--first', '--layout', 'discord', '--workers',
                      '1000-1023')
    js53 = lab.realm('--first', '--layout', 'js53')
    web = lab.dir + '/web'
    agent = lab.agent(realm, conf=dict(QUICK, http='unix:' + web)).start()
    small = lab.agent(js53, conf=QUICK).start()
    agent.serving()
    small.serving()
    at = ('--socket', agent.socket)
    ids = firn('next', '-n', 3, '--json', *at).json['ids']
    documents = [firn(*words).out for words in (
        ('next', '-n', '20', '--json', *at),
        ('decode', '--json', *at, *ids),
        ('decode', '--json', '--layout', 'discord', str(2**64 - 1)),
        ('status', '--json', *at),
        ('realm', 'show', '--json', *zk(lab, realm.name)),
        ('fleet', '--json', *zk(lab, realm.name)),
        ('plan', '--json', '--bits', '1/0/63'),
    )]
    documents += [ask(web, '/status').text, ask(web, '/agents').text]
    back = json.loads(through_node(ROUND, json.dumps(documents)))
    for text, again in zip(documents, back):
        assert json.loads(again) == json.loads(text), text
    assert all(isinstance(i, str) and int(i) > 2**53 for i in ids)
    numbers = [str(n) for n in take(small)]
    exact = through_node(
        'process.stdout.write(JSON.stringify(JSON.parse(require("fs")'
        '.readFileSync(0, "utf8")).map(t => Number.isSafeInteger(Number(t))'
        ' && String(Number(t)) === t)))', json.dumps(numbers))
    assert json.loads(exact) == [True] * len(numbers)
