# SPDX-License-Identifier: Apache-2.0
"""Which fault strikes whom, when and for how long: all from the seed.

Invariant: nothing here looks at a clock, a process or the order of a set, so
that one seed is one schedule, whatever the machine.
"""
import collections
import random

AGENTS, SERVERS = 5, 3
SECONDS = 38.0  # of faults, in one round
PAUSE = 0.75  # between two of them, on average

# kind: (how often in a round, shortest and longest, what it needs for itself)
KINDS = collections.OrderedDict((
    ('kill', (4, 0.1, 4, 'process')),
    ('kill-forget', (2, 0.1, 4, 'process')),
    ('restart', (2, 0.0, 1, 'process')),
    ('freeze', (3, 0.3, 7, 'process')),
    ('hup', (2, 0.5, 1, 'process')),
    ('socket-removed', (2, 1, 2, 'process')),
    ('cut', (2, 1, 10, 'net')),
    ('cut-up', (1, 1, 8, 'net')),
    ('cut-down', (1, 1, 8, 'net')),
    ('cut-one-server', (1, 2, 8, 'net')),
    ('refuse', (1, 1, 6, 'net')),
    ('reset', (1, 0.0, 0, 'net')),
    ('slow', (2, 2, 8, 'net')),
    ('swallow', (4, 3, 6, 'net')),
    ('disk-full', (2, 1, 6, 'disk')),
    ('disk-limit', (2, 1, 5, 'disk')),
    ('descriptors', (2, 1, 5, 'process')),
    ('clock-step', (4, 1, 8, 'clock')),
    ('clock-rate', (2, 3, 8, 'clock')),
    ('client-crash', (4, 0.1, 1, 'client')),
    ('client-freeze', (2, 0.3, 3, 'client')),
    ('leader-kill', (1, 1, 4, 'servers')),
    ('leader-freeze', (1, 1, 6, 'servers')),
    ('rolling-restart', (1, 0.0, 0, 'servers')),
    ('outage', (1, 1, 5, 'servers')),
    ('server-clock', (2, 2, 8, 'server-clock')),
    ('marks-deleted', (1, 0.0, 0, 'realm')),
    ('after-loss', (1, 0.5, 3, 'realm')),
))
OF_ALL = ('servers', 'realm')  # there is one of these
# One agent's clock alone, after a round, while all others are well: an agent
# without peers would follow, and its IDs be of that time.
WILD = (-86400.0, -3600.0, -30.0, 30.0, 3600.0, 86400.0)

Fault = collections.namedtuple('Fault', 'at until kind who what')


def deck(rng):
    cards = [kind for kind, row in KINDS.items() for _ in range(row[0])]
    rng.shuffle(cards)
    return cards


def detail(rng, kind):
    """What else there is to say of one fault."""
    if kind == 'clock-step':
        seconds = rng.choice((rng.uniform(0.002, 0.05),
                              rng.uniform(0.1, 1.5)))
        return round(rng.choice((-1, 1)) * seconds, 3)
    if kind == 'clock-rate':
        return round(rng.uniform(0.98, 1.02), 4)
    if kind == 'server-clock':
        return rng.choice((-3600.0, -20.0, -2.0, 2.0, 20.0, 3600.0))
    if kind == 'swallow':
        operation, path = rng.choice((
            ('set', r'/marks\.'), ('set', r'/marks\.'), ('get', r'/marks\.'),
            ('create', '/workers'), ('set', '/fleet'), ('list', '/workers')))
        return (operation, path, rng.randint(1, 4),
                rng.choice(('reset', 'skip', 'silence')),
                rng.choice(('reply', 'reply', 'request')))
    if kind == 'slow':
        return round(rng.uniform(0.02, 0.7), 3)
    if kind == 'hup':
        return rng.choice(('good', 'broken', 'removed'))
    if kind == 'cut-one-server':
        return rng.randrange(SERVERS)
    if kind in ('client-freeze', 'client-crash'):
        return rng.randrange(3)
    if kind == 'marks-deleted':
        return rng.randint(1, 2)
    return None


def pick(rng, needs, at, busy):
    """Somebody who is free for it; None if nobody is."""
    if needs in OF_ALL:
        who = [None]
    else:
        who = list(range(SERVERS if needs == 'server-clock' else AGENTS))
        rng.shuffle(who)
    # a tree is restored by an operator, with a ZooKeeper that answers
    alike = OF_ALL if needs in OF_ALL else (needs,)
    for one in who:
        if all(busy.get((n, one), 0) <= at for n in alike):
            return (one,)
    return None


def round_of(seed, number):
    """The faults of one round, in the order of time."""
    rng = random.Random('%d/%d' % (seed, number))
    cards, busy, faults, at = deck(rng), {}, [], 0.0
    while cards and at < SECONDS:
        at = round(at + rng.uniform(0, 2 * PAUSE), 3)
        for i, kind in enumerate(cards):
            _, low, high, needs = KINDS[kind]
            found = pick(rng, needs, at, busy)
            if found:
                break
        else:
            continue
        del cards[i]
        until = round(at + rng.uniform(low, high), 3)
        # a server needs its time to start; the next fault finds it up
        busy[(needs, found[0])] = until + (4 if needs in OF_ALL else 0.5)
        faults.append(Fault(at, until, kind, found[0], detail(rng, kind)))
    return faults, (rng.randrange(AGENTS), rng.choice(WILD))
