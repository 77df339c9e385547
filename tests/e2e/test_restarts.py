# SPDX-License-Identifier: Apache-2.0
"""Restarts under load: a pause for the applications, not an error.

restarts() takes whatever stops and starts the agent, so that it serves an
agent with a socket of its own and one whose socket outlives it.
"""
import glob
import statistics
import struct
import time

import pytest

from firnlab.agent import QUICK
from firnlab.load import check

PAIR = struct.Struct('=qqQ')  # before, after (wall clock, ns), ID


def loads_on(lab, agent, timeout):
    """Single IDs, which tell how long each call took, and hundreds."""
    return [load.takes(20) for load in (
        lab.load(agent, threads=3, rate=300, timeout=timeout),
        lab.load(agent, mode='many', batch=200, rate=50, timeout=timeout))]


def restarts(agent, loads, times, stop):
    """So many times down and up again; when each began (wall clock, ns)."""
    began = []
    for _ in range(times):
        began.append(time.time_ns())
        stop()
        agent.start()
        agent.serving()
        for load in loads:
            load.takes(20)
    return began


def pauses(load, began):
    """What the applications saw: the longest call of each restart, in ms."""
    calls = []
    for name in glob.glob(load.prefix + '.*.pairs'):
        with open(name, 'rb') as f:
            raw = f.read()
        calls += PAIR.iter_unpack(raw[:len(raw) // PAIR.size * PAIR.size])
    found = []
    for start, end in zip(began, began[1:] + [time.time_ns()]):
        found.append(max((after - before) / 1e6 for before, after, _ in calls
                         if after >= start and before < end))
    return found


def judge(loads, began, what):
    """No call failed, no ID twice; prints the pauses."""
    for load in loads:
        result = load.stop()
        assert result['failed'] == 0, (result, load.events())
    seen = pauses(loads[0], began)
    print('%s: pause of a call p50 %.1f ms, max of %d %.1f ms' % (
        what, statistics.median(seen), len(seen), max(seen)))
    found = check(loads, ttl=1000, lead=5)
    assert found['ids'] > 0
    return found


@pytest.mark.parametrize('how', ['end', 'kill'])
def test_restarts_without_activation(lab, how):
    """20 times SIGTERM, or kill -9, and up again at once: no call with a
    deadline of 5 s fails, and the worker ID stays."""
    realm = lab.realm()
    agent = lab.agent(realm, conf=QUICK).up().reserves(5000)
    worker = agent.worker()
    loads = loads_on(lab, agent, 5000)
    began = restarts(agent, loads, 20, getattr(agent, how))
    found = judge(loads, began, 'SIGTERM' if how == 'end' else 'kill -9')
    assert len(found['workers']) == 1
    assert agent.worker() == worker
