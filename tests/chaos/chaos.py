#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chaos: real servers, agents and applications, and faults of all kinds at
random, from a seed that is printed.  Every ID goes to the checker.

The last line counts: "N passed, N failed".
"""
import argparse
import collections
import contextlib
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), 'e2e')]

from firnlab import process, wait, zoo  # noqa: E402
from firnlab.build import built  # noqa: E402
import faults  # noqa: E402
import schedule  # noqa: E402
from world import UNEXPECTED, World  # noqa: E402

ROUND_SECONDS = 55  # with what comes after it, about
MOUNTS = 'FIRN_CHAOS_MOUNTS'


def arguments():
    seed = os.environ.get('FIRN_TEST_SEED')
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--seed', type=int, default=int(seed) if seed else
                   random.SystemRandom().randrange(1, 10**9))
    p.add_argument('--minutes', type=float, default=2,
                   help='how long to go on; at least one round')
    p.add_argument('--rate', type=int, default=20,
                   help='calls for 500 IDs a second, for each agent')
    p.add_argument('--keep', action='store_true',
                   help='keep the files of a run that passed, too')
    p.add_argument('--plan', action='store_true',
                   help='print the schedule of the seed and stop')
    return p.parse_args()


def own_mounts():
    """Starts again with mounts of one's own, which end with the process.
    Without the right to that full disks are only limits of file sizes."""
    if MOUNTS in os.environ or os.getuid() != 0:
        return os.environ.get(MOUNTS) == 'yes'
    argv = [sys.executable] + sys.argv
    if os.system('unshare -m true 2>/dev/null') != 0:
        return False
    os.environ[MOUNTS] = 'yes'
    os.execvp('unshare', ['unshare', '-m', '--propagation', 'private'] + argv)


# ---- striking ----------------------------------------------------------------

def target(world, fault):
    if fault.kind == 'server-clock':
        return world.ensemble.servers[fault.who], 'server %d' % (
            fault.who + 1)
    if fault.who is None:
        return None, 'all'
    return world.seats[fault.who], 'a%d' % fault.who


def strike(world, fault, start):
    """One fault from its beginning to its end, in a thread of its own.  What
    strikes all waits for one of its kind that takes longer."""
    whom, name = target(world, fault)
    try:
        sleep_until(start + fault.at)
        with world.of_all if fault.who is None else contextlib.nullcontext():
            began = time.monotonic()
            running = faults.struck(fault.kind)(world, whom, fault)
            said = next(running)
            world.counts[fault.kind] += 1
            world.say('%-8s %-16s %s, for %.1f s' % (
                name, fault.kind, said, fault.until - fault.at))
            sleep_until(began + fault.until - fault.at)
            for _ in running:
                raise RuntimeError('more than one yield')
        world.say('%-8s %-16s is over' % (name, fault.kind))
    except Exception:
        world.wrong.append('%s %s cannot be done: %s' % (
            name, fault.kind, traceback.format_exc()))


def sleep_until(when):
    left = when - time.monotonic()
    if left > 0:
        time.sleep(left)


def strike_all(world, plan):
    start = time.monotonic()
    threads = [threading.Thread(target=strike, args=(world, f, start),
                                daemon=True) for f in plan]
    for t in threads:
        t.start()
    for t in threads:
        t.join(600)
        assert not t.is_alive(), 'a fault does not end'


def rounds(world, minutes):
    end = time.monotonic() + 60 * minutes
    number = 0
    while number == 0 or time.monotonic() + ROUND_SECONDS / 2 < end:
        plan, (who, seconds) = schedule.round_of(world.seed, number)
        world.say('round %d: %d faults' % (number, len(plan)))
        strike_all(world, plan)
        world.all_serve('round %d' % number)
        strike_all(world, [schedule.Fault(0, 3, 'wild-clock', who, seconds)])
        world.all_serve('wild clock')
        number += 1
    return number


# ---- the verdict -------------------------------------------------------------

class Verdict:
    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, good, what, detail=''):
        self.passed += bool(good)
        self.failed += not good
        print('%-4s %s' % ('ok' if good else 'FAIL', what), flush=True)
        if not good and detail:
            print(detail, flush=True)
        return good


def weigh(world, verdict, number):
    results = world.stop()
    windows = world.windows()
    verdict(not windows.wrong, 'marks in ZooKeeper\'s own log: %d writes, %d '
            'takeovers, no tick of a worker ID allowed to two agents' % (
                windows.writes, windows.takeovers), '\n'.join(windows.wrong))
    checked = world.judge(windows)
    if not verdict(checked.status in (0, 1), 'the checker read every ID',
                   repr(checked)):
        return
    found = checked.json
    got = sum(r['ids'] for r in results) + sum(
        s.crowd.ids() for s in world.seats)
    print('%d IDs of %d files, %d worker IDs, %d of them with clock readings'
          % (found['ids'], found['files'], len(found['workers']),
             found['pairs']))
    verdict(found['ids'] == got > 0, 'all %d IDs that were handed out are '
            'there' % got, '%d are' % found['ids'])
    for key, what in (
            ('repeats', 'no ID twice'),
            ('decreases', 'each thread of a handle only goes up'),
            ('bad_window', 'each ID in a window of its agent: worker and '
             'time as claimed'),
            ('bad_pair', 'no ID older or newer than ttl, lead and the '
             'injected clock allow (oldest: %s ms)' % found.get('oldest_ms')),
            ('bad_bits', 'each ID within the layout')):
        verdict(found[key] == 0, what, '%d\n%s' % (found[key], checked.err))
    errors = collections.Counter()
    for result in results:
        errors.update(result['errors'])
    verdict(not any(errors[e] for e in UNEXPECTED),
            'errors of calls: %s' % dict(sorted(errors.items())))
    swallowed = world.counts.pop('swallowed', 0)
    exited = world.counts.pop('exited', 0)
    counts = sorted(world.counts.items())
    print('by kind: %s; frames swallowed %d, agents that ended by themselves '
          '%d' % (', '.join('%s %d' % c for c in counts), swallowed, exited))
    print('%d faults of %d kinds in %d rounds' % (
        sum(n for _, n in counts), len(counts), number))


def run(world, verdict, minutes):
    """Everything between start and end; False if it broke off."""
    number = 0
    try:
        world.start()
        number = rounds(world, minutes)
        verdict(True, 'liveness: after %d rounds all served again' % number)
    except Exception:
        verdict(False, 'liveness', traceback.format_exc())
    try:
        weigh(world, verdict, number)
    except Exception:
        verdict(False, 'the verdict', traceback.format_exc())
    world.close()
    verdict(not world.wrong, 'no fault of the programs or of this one',
            '\n'.join(world.wrong))


def print_plan(seed, minutes):
    for number in range(max(1, round(60 * minutes / ROUND_SECONDS))):
        plan, wild = schedule.round_of(seed, number)
        for f in plan:
            print(number, *f)
        print(number, 'wild-clock', *wild)


def main():
    args = arguments()
    if args.plan:
        print_plan(args.seed, args.minutes)
        return 0
    mounts = own_mounts()
    missing = zoo.missing()
    if missing or not built('firn', 'firnd', 'firnd-test', 'idload',
                            'idcheck', 'idcrash'):
        print('chaos: %s' % (missing or 'set FIRN_BUILD to a build'))
        print('0 passed, 1 failed')
        return 1
    directory = tempfile.mkdtemp(prefix='firn-chaos-', dir='/tmp')
    print('chaos: --seed %d --minutes %g in %s, full disks are %s' % (
        args.seed, args.minutes, directory,
        'small file systems' if mounts else 'limits of file sizes'))
    verdict = Verdict()
    world = World(directory, args.seed, args.rate, mounts)
    run(world, verdict, args.minutes)
    process.end_all()
    if verdict.failed or args.keep:
        print('chaos: --seed %d; logs, IDs and timeline are kept in %s' % (
            args.seed, directory))
    if not verdict.failed and not args.keep:
        shutil.rmtree(directory, ignore_errors=True)
    print('%d passed, %d failed' % (verdict.passed, verdict.failed))
    return int(verdict.failed > 0)


if __name__ == '__main__':
    sys.exit(main())
