# SPDX-License-Identifier: Apache-2.0
"""idcheck itself: what it must find, planted; what it must not find."""
import array
import json
import os
import struct
import sys

import pytest

from firnlab.build import SOURCE, run

sys.path.append(os.path.join(SOURCE, 'tests', 'chaos'))
import schedule  # noqa: E402
import txnlog  # noqa: E402

EPOCH_MS = 1735689600000
MS = 1 << 22
MILLIONS = 20000000


def ids(n, worker=7, tick=1000, step=1):
    """n ascending IDs of one worker, 4096 a tick at most."""
    return array.array('Q', ((tick + i // 4096) * MS + worker * 4096 + i % 4096
                             for i in range(0, n * step, step)))


def write(path, values):
    with open(path, 'wb') as f:
        array.array('Q', values).tofile(f)
    return path


def write_pairs(path, *records):
    with open(path, 'wb') as f:
        for record in records:
            f.write(struct.pack('=qqQ', *record))
    return path


def idcheck(*args, status):
    return run('idcheck', *args, status=status, seconds=120)


@pytest.fixture(scope='module')
def many(tmp_path_factory):
    """20 million good IDs, dealt out to four files as a fleet would."""
    directory = tmp_path_factory.mktemp('many')
    values = ids(MILLIONS)
    files = [write(directory / ('%d.ids' % k), values[k::4])
             for k in range(4)]
    yield files
    for path in files:
        path.unlink()


def plant(path, at, value):
    """Overwrites one ID; returns what stood there."""
    with open(path, 'r+b') as f:
        f.seek(8 * at)
        (old,) = struct.unpack('=Q', f.read(8))
        f.seek(8 * at)
        f.write(struct.pack('=Q', value))
    return old


def test_twenty_million_good_ids_pass(many):
    result = idcheck('--workers', '7', *many, status=0)
    assert result.json['ids'] == MILLIONS
    assert result.json['repeats'] == result.json['decreases'] == 0
    assert result.json['workers'] == [7]


def test_one_duplicate_among_twenty_million_is_found(many):
    """Neighbours of one file move together, so that it stays ascending and
    only a comparison across files can tell."""
    with open(many[2], 'rb') as f:
        f.seek(8 * 3000000)
        (other,) = struct.unpack('=Q', f.read(8))
    old = plant(many[0], 3000000, other)
    try:
        result = idcheck(*many, status=1)
        assert result.json['repeats'] == 1
        assert result.json['decreases'] == 0
        assert str(other) in result.err
        assert str(many[0]) in result.err and str(many[2]) in result.err
    finally:
        plant(many[0], 3000000, old)


def test_one_decrease_is_found(many):
    old = plant(many[1], 1234567, 999 * MS)
    try:
        result = idcheck(*many, status=1)
        assert result.json['decreases'] == 1
        assert result.json['repeats'] == 0
    finally:
        plant(many[1], 1234567, old)


def test_a_wrong_worker_is_found(tmp_path):
    values = ids(1000)
    values[999] += 4096  # the last one, so that the file still ascends
    a = write(tmp_path / 'a.ids', values)
    result = idcheck('--workers', '1-6,7', a, status=1)
    assert result.json['bad_worker'] == 1
    assert result.json['workers'] == [7, 8]
    idcheck('--workers', '7-8', a, status=0)


def test_a_duplicate_within_one_file_is_found(tmp_path):
    values = ids(1000)
    values[700] = values[699]
    result = idcheck(write(tmp_path / 'a.ids', values), status=1)
    assert result.json['repeats'] == 1
    assert result.json['decreases'] == 1


def test_a_duplicate_far_apart_in_one_file_is_found(tmp_path):
    """Not next to each other: the file falls, and both runs are merged."""
    values = ids(1000)
    result = idcheck(write(tmp_path / 'a.ids', values[:] + values[10:11]),
                     status=1)
    assert result.json['repeats'] == 1


def test_a_whole_batch_handed_out_twice_is_found(tmp_path):
    values = ids(5000)
    a = write(tmp_path / 'a.ids', values[:3000])
    b = write(tmp_path / 'b.ids', values[2000:])
    assert idcheck(a, b, status=1).json['repeats'] == 1000


def test_all_64_bits_are_compared_unsigned(tmp_path):
    a = write(tmp_path / 'a.ids', [1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
    b = write(tmp_path / 'b.ids', [(1 << 64) - 1])
    layout = ('--layout', '42/10/12', '--epoch', '0')
    assert idcheck(*layout, a, status=0).json['ids'] == 4
    assert idcheck(*layout, a, b, status=1).json['repeats'] == 1


def test_bits_above_the_layout_are_found(tmp_path):
    a = write(tmp_path / 'a.ids', [1 << 63])
    assert idcheck(a, status=1).json['bad_bits'] == 1


def test_a_time_out_of_bounds_is_found(tmp_path):
    a = write(tmp_path / 'a.ids', [10 * MS, 20 * MS, 30 * MS])
    idcheck('--not-before', EPOCH_MS + 10, '--not-after', EPOCH_MS + 30, a,
            status=0)
    result = idcheck('--not-before', EPOCH_MS + 11, '--not-after',
                     EPOCH_MS + 29, a, status=1)
    assert result.json['bad_time'] == 2


def test_an_id_older_than_its_ttl_is_found(tmp_path):
    asked_ms = EPOCH_MS + 5000
    pair = (asked_ms * 1000000, (asked_ms + 1) * 1000000, 3000 * MS)
    a = write_pairs(tmp_path / 'a.pairs', pair)
    assert idcheck('--ttl', 2000, a, status=0).json['oldest_ms'] == 2000
    assert idcheck('--ttl', 1000, a, status=1).json['bad_pair'] == 1


def test_an_id_ahead_of_the_clock_is_found(tmp_path):
    asked_ms = EPOCH_MS + 5000
    pair = (asked_ms * 1000000, (asked_ms + 1) * 1000000, 5010 * MS)
    a = write_pairs(tmp_path / 'a.pairs', pair)
    idcheck('--lead', 10, a, status=0)
    assert idcheck('--lead', 5, a, status=1).json['bad_pair'] == 1


def test_a_file_cut_off_is_no_pass(tmp_path):
    path = tmp_path / 'a.ids'
    path.write_bytes(b'1234567')
    idcheck(path, status=2)
    idcheck(tmp_path / 'missing.ids', status=2)


def test_empty_files_and_bad_arguments(tmp_path):
    path = tmp_path / 'a.ids'
    path.write_bytes(b'')
    assert idcheck(path, status=0).json['ids'] == 0
    idcheck(status=64)
    idcheck('--workers', '3-1', path, status=64)
    idcheck('--layout', '41/10', path, status=64)


# ---- what its agent was allowed to issue, and what its clock showed ----------

def table(path, *rows):
    path.write_text(''.join('%d %d %d\n' % row for row in rows))
    return path


def test_an_id_outside_the_windows_of_its_agent_is_found(tmp_path):
    """The same IDs: fine from the agent whose ticks they are, a fault from
    another one, and a fault one tick off at either end."""
    own = write(tmp_path / 'own.ids', ids(3 * 4096))  # ticks 1000..1002
    exact = table(tmp_path / 'exact', (8, 0, 9999), (7, 1000, 1001),
                  (7, 1002, 1002), (6, 0, 9999))
    assert idcheck('--windows', exact, own, status=0).json['bad_window'] == 0
    for row in ((7, 1001, 1002), (7, 1000, 1001), (6, 0, 9999)):
        short = table(tmp_path / 'short', row)
        found = idcheck('--windows', short, own, status=1)
        assert found.json['bad_window'] == (12288 if row[0] == 6 else 4096)
        assert 'in none of its agent' in found.err
    nothing = table(tmp_path / 'nothing')
    assert idcheck('--windows', nothing, own,
                   status=1).json['bad_window'] == 12288
    # it holds for the files that are named after it, up to the next
    other = write(tmp_path / 'other.ids', ids(10, worker=6))
    idcheck(own, '--windows', table(tmp_path / 'six', (6, 1000, 1000)), other,
            status=0)
    idcheck('--windows', tmp_path / 'six', other, '--windows', exact, own,
            status=0)
    idcheck('--windows', tmp_path / 'six', other, own, status=1)
    idcheck('--windows', tmp_path / 'six', other, '--windows', '', own,
            status=0)


def test_an_id_too_early_or_late_for_the_clock_of_its_agent(tmp_path):
    """Bounds widen from the instant on that is named, by that and no more."""
    def at(asked_ms, id_ms):
        return ((EPOCH_MS + asked_ms) * 1000000,
                (EPOCH_MS + asked_ms + 1) * 1000000, id_ms * MS)

    old = write_pairs(tmp_path / 'old.pairs', at(5000, 2500))
    new = write_pairs(tmp_path / 'new.pairs', at(5000, 6500))
    bounds = ('--ttl', 1000, '--lead', 10)

    def bad(path, *rows):
        clock = table(tmp_path / 'clock', *rows)
        result = idcheck(*bounds, '--clock', clock, path, status=None)
        assert result.status == (result.json['bad_pair'] > 0)
        return result.json['bad_pair']

    before, after = EPOCH_MS + 4000, EPOCH_MS + 6000
    assert bad(old) == bad(new) == 1
    assert bad(old, (before, 1500, 0)) == bad(new, (before, 0, 1500)) == 0
    assert bad(old, (before, 1490, 0)) == bad(new, (before, 0, 1480)) == 1
    assert bad(old, (before, 0, 9999)) == bad(new, (before, 9999, 0)) == 1
    assert bad(old, (after, 1500, 0)) == bad(new, (after, 0, 1500)) == 1
    # what it showed once it may go on from
    assert bad(old, (before, 1500, 0), (before + 1, 0, 0)) == 0


def test_tables_that_cannot_be_understood_are_no_pass(tmp_path):
    own = write(tmp_path / 'own.ids', ids(10))
    for text in ('7 1000\n', '7 1000 1001 1\n', 'x 1 2\n', '7 1000 1001',
                 '7 2000 1999\n', '7 0 1500\n7 1500 2000\n'):
        (tmp_path / 'bad').write_text(text)
        idcheck('--windows', tmp_path / 'bad', own, status=2)
    for text in ('1 -1 0\n', '2 0 0\n1 0 0\n'):
        (tmp_path / 'bad').write_text(text)
        idcheck('--clock', tmp_path / 'bad', own, status=2)
    idcheck('--windows', tmp_path / 'missing', own, status=2)


# ---- what ZooKeeper's log says that agents were allowed ----------------------

AGENTS = {11: 'a', 12: 'a', 21: 'b'}  # session: agent
PATH = '/firn/r/marks.%s/%04d'


def replay(*writes):
    """Each is (session, kind, owner, ceiling[, worker[, generation]])."""
    changes = []
    for zxid, (session, kind, owner, ceiling, *where) in enumerate(writes):
        worker, generation = (where + [7, '1-x'][len(where):])[:2]
        data = json.dumps({'owner': owner, 'ceiling_tick': str(ceiling)})
        changes.append(txnlog.Change(zxid, session, kind,
                                     PATH % (generation, worker),
                                     data.encode()))
    return txnlog.Windows(changes, AGENTS)


def test_the_windows_of_a_mark_that_changes_hands():
    """Above what was taken over, up to what was confirmed last; a clean stop
    gives the rest back; a restart is the same agent under a new name."""
    found = replay((11, 'create', 'A', 100), (11, 'set', 'A', 200),
                   (12, 'set', 'A2', 200), (12, 'set', 'A2', 300),
                   (21, 'set', 'B', 300), (21, 'set', 'B', 400),
                   (21, 'set', 'B', 350), (12, 'set', 'A3', 350),
                   (12, 'set', 'A3', 500))
    assert found.wrong == []
    assert found.allowed == {'a': [(7, 101, 300), (7, 351, 500)],
                             'b': [(7, 301, 350)]}
    assert found.takeovers == 3 and found.writes == 9


def test_a_restart_hands_back_a_part_of_the_window_it_goes_on_in():
    """Then what is above is its no more, and not another agent's part."""
    found = replay((11, 'create', 'A', 100), (11, 'set', 'A', 300),
                   (12, 'set', 'A2', 300), (12, 'set', 'A2', 250),
                   (21, 'set', 'B', 250), (21, 'set', 'B', 400))
    assert found.wrong == []
    assert found.allowed == {'a': [(7, 101, 250)], 'b': [(7, 251, 400)]}


@pytest.mark.parametrize('wrong, writes', [
    ('takes over', [(11, 'create', 'A', 100), (11, 'set', 'A', 200),
                    (21, 'set', 'B', 150)]),
    ('lowers', [(11, 'create', 'A', 100), (11, 'set', 'A', 200),
                (21, 'set', 'B', 200), (21, 'set', 'B', 190)]),
    ('raises', [(11, 'create', 'A', 100), (11, 'set', 'A', 200),
                (11, 'set', 'A', 150), (11, 'set', 'A', 300)]),
    ('writes as A', [(11, 'create', 'A', 100), (21, 'set', 'A', 200)]),
    ('a stranger', [(99, 'create', 'X', 100)]),
    ('a deletes', [(11, 'create', 'A', 100), (11, 'delete', 'A', 0)]),
    ('no mark was there', [(11, 'set', 'A', 100)]),
    ('allowed to a and to b', [(11, 'create', 'A', 100),
                               (11, 'set', 'A', 300), (99, 'delete', '', 0),
                               (21, 'create', 'B', 250),
                               (21, 'set', 'B', 400)]),
    ('allowed to a and to b', [(11, 'create', 'A', 100),
                               (11, 'set', 'A', 900), (21, 'create', 'B', 250,
                                                       7, '2-y'),
                               (21, 'set', 'B', 300, 7, '2-y')]),
])
def test_what_no_agent_may_write_is_found(wrong, writes):
    assert any(wrong in line for line in replay(*writes).wrong)
    # the same on two worker IDs harms nobody
    if 'allowed to' in wrong:
        apart = [w[:4] + (8 if w[0] == 21 else 7,) + w[5:] for w in writes]
        assert replay(*apart).wrong == []


def test_the_log_of_a_real_server_is_read_whole(own_lab):
    """Every change, in its order, up to a tail that a kill cut off."""
    server = own_lab.own_server()
    with server.client() as zoo:
        zoo.create('/a', b'1')
        for i in range(500):
            zoo.set('/a', b'%d' % i)
        zoo.create('/a/s-', b'x', 2)
        zoo.delete('/a/s-0000000000')
    server.kill()
    changes = txnlog.read_servers([server.dir])
    assert [c.kind for c in changes] == ['create'] + ['set'] * 500 + [
        'create', 'delete']
    assert [c.data for c in changes[1:501]] == [b'%d' % i for i in range(500)]
    assert len({c.session for c in changes}) == 1
    (log,) = [n for n in os.listdir(server.dir + '/data/version-2')
              if n.startswith('log.')]
    log = server.dir + '/data/version-2/' + log
    with open(log, 'rb') as f:
        raw = f.read()
    end = raw.rstrip(b'\0')
    for kept in (end[:-3], end[:len(end) // 2]):
        with open(log, 'wb') as f:
            f.write(kept)
        seen = txnlog.read_servers([server.dir])
        assert seen == changes[:len(seen)] and len(seen) > 200
        # the record that is cut off first is the end of the session
        assert (len(seen) == len(changes)) == (len(kept) == len(end) - 3)


def test_a_seed_is_a_schedule():
    """The same again, another for another seed, and no kind left out."""
    one = [schedule.round_of(3, n) for n in range(20)]
    assert one == [schedule.round_of(3, n) for n in range(20)]
    assert one != [schedule.round_of(4, n) for n in range(20)]
    assert {f.kind for plan, _ in one for f in plan} == set(schedule.KINDS)
