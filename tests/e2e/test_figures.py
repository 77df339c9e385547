# SPDX-License-Identifier: Apache-2.0
"""The programs behind `make bench` run, and its table judges as it says.

No figure is looked at: they are for a quiet machine.
"""
import os
import sys

import pytest

from firnlab.build import SOURCE, run

sys.path.append(os.path.join(SOURCE, 'tests', 'bench'))
import report  # noqa: E402
import rows  # noqa: E402


def values(result):
    """{name: value} of a program's lines."""
    found = {}
    for line in result.out.splitlines():
        name, _, value = line.partition(' ')
        if value:
            found[name] = float(value)
    return found


@pytest.fixture
def agent(lab):
    return lab.agent(lab.realm('--bits', '41/2/20', '--first')).up()


def test_two_threads_share_a_handle_and_no_id(agent):
    found = values(run('bench_stub', 'cached',
                       env={'FIRN_SOCKET': agent.socket}))
    assert found['next_1_thread'] > 0 and found['next_2_threads_gain'] > 0
    assert found['next_2_threads_twice'] == 0


@pytest.mark.parametrize('what, name', [
    ('many', 'next_many_4096'), ('uncached', 'uncached_p99'),
    ('short', 'short_p50')])
def test_a_measurement_of_the_stub(agent, what, name):
    assert values(run('bench_stub', what, env={
        'FIRN_SOCKET': agent.socket}))[name] > 0


def test_the_peers_that_need_no_server():
    assert values(run('bench_peer', 'generator'))['generator'] > 0
    assert values(run('bench_peer', 'echo'))['echo_p50'] > 0


def test_a_crowd(agent):
    found = values(run('bench_agent', 'crowd', 40, 10, agent.process.pid,
                       env={'FIRN_SOCKET': agent.socket}))
    assert found['crowd_alone_p50'] > 0 and found['crowd_beside_p50'] > 0


def test_a_fleet_of_sessions(lab):
    found = values(run('zkload', lab.server.port, 30, 4))
    assert found['zk_sets'] > 0 and found['zk_get_p50'] > 0


def row_of(what, medians, absent=()):
    found = rows.judge({k: [v] for k, v in medians.items()}, dict(absent))
    return next(r for r in found if what in r['what'])


def test_the_table_judges():
    many = 'firn_next_many'
    assert row_of(many, {'next_many_4096': 1.5})['verdict'] == 'met'
    assert row_of(many, {'next_many_4096': 1.6})['verdict'] == 'missed'
    assert row_of(many, {})['verdict'] == 'not measured'
    gain = 'two threads'
    assert row_of(gain, {'next_2_threads_gain': 1.9})['verdict'] == 'met'
    assert row_of(gain, {'next_2_threads_gain': 1.7})['verdict'] == 'missed'


def test_the_table_goes_by_the_ratio_to_a_peer():
    one = {'next_1_thread': 7.0, 'uuid': 10.0}
    first = row_of('from the cache', one)
    assert first['verdict'] == 'met' and first['ratio'] == pytest.approx(0.7)
    assert row_of('from the cache', dict(one, uuid=9))['verdict'] == 'missed'
    alone = row_of('from the cache', {'next_1_thread': 7.0},
                   {'uuidd': 'not installed'})
    assert alone['verdict'] == 'not installed' and alone['figure'] == 7.0


def test_an_id_got_twice_in_one_round_is_not_averaged_away():
    found = rows.judge({'next_2_threads_twice': [0, 0, 1]}, {})
    twice = next(r for r in found if 'both threads' in r['what'])
    assert twice['verdict'] == 'missed'


def test_the_chart_is_a_document_whatever_is_missing():
    import xml.dom.minidom
    for medians in ({'next_1_thread': 8.0}, {'next_1_thread': 8.0,
                                             'redis_p50': 9000.0}):
        xml.dom.minidom.parseString(
            report.chart(medians, 'a < b; **c**').encode())
