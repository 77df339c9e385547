# SPDX-License-Identifier: Apache-2.0
"""idcheck itself: what it must find, planted; what it must not find."""
import array
import struct

import pytest

from firnlab.build import run

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
