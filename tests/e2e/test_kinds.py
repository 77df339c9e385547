# SPDX-License-Identifier: Apache-2.0
"""firn id, decode, seal and unseal: kinds of IDs that need no agent."""
import json
import os
import re
import subprocess
import uuid

import pytest

from firnlab import build
from firnlab.build import firn

pytestmark = pytest.mark.short

FORMS = {
    'v4': r'[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-'
          r'[0-9a-f]{12}$',
    'v7': r'[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-'
          r'[0-9a-f]{12}$',
    'ulid': r'[0-7][0-9A-HJKMNP-TV-Z]{25}$',
    'ksuid': r'[0-9A-Za-z]{27}$',
}
KINDS = {'v4': 'uuid4', 'v7': 'uuid7', 'ulid': 'ulid', 'ksuid': 'ksuid'}


@pytest.mark.parametrize('kind', FORMS)
def test_id(kind):
    ids = firn('id', kind, '-n', '5000').out.split()
    assert len(set(ids)) == 5000
    for text in ids:
        assert re.match(FORMS[kind], text), text
    if kind != 'v4':
        assert ids == sorted(ids)
    one = json.loads(firn('id', kind, '--json', '-n', '3').out)
    assert list(one) == ['ids'] and len(one['ids']) == 3


@pytest.mark.parametrize('words', [['id'], ['id', 'v5'], ['id', 'v4', 'v7'],
                                   ['id', 'v4', '-n', '0'], ['seal', '1']],
                         ids=' '.join)
def test_wrong_words(words):
    result = firn(*words, status=64)
    assert len(result.err.strip().splitlines()) == 1 and not result.out


def test_decode_takes_every_kind():
    texts = {'uuid4': '919108f7-52d1-4320-9bac-f847db4148a8',
             'uuid7': '017F22E2-79B0-7CC3-98C4-DC0C0C07398F',
             'ulid': '01ARZ3NDEKTSV4RRFFQ69G5FAV',
             'ksuid': '0ujtsYcgvSTl8PAuAdqWYSMnLOv'}
    times = {'uuid4': None, 'uuid7': '1645557742000',
             'ulid': '1469922850259', 'ksuid': '1507608047000'}
    out = json.loads(firn('decode', '--layout', 'firn', '--json',
                          *texts.values()).out)
    for item in out:
        assert item['unix_ms'] == times[item['kind']]
        assert item['id'].lower() == texts[item['kind']].lower()
        assert item['worker'] is None and item['sequence'] is None
    assert [item['kind'] for item in out] == list(texts)
    for text in ('{%s}', 'urn:uuid:%s'):
        text %= texts['uuid4']
        assert 'uuid4' in firn('decode', '--layout', 'firn', text).out
    for text, where in (('80000000000000000000000000', 'over'),
                        ('01ARYZ6S4100000000000000U0', 'character 25'),
                        ('aWgEPTl1tmebfsQzFP4bxwgy80!', 'character 27'),
                        ('919108f7-52d1-4320-9bac-f847db4148ag',
                         'character 36')):
        assert where in firn('decode', '--layout', 'firn', text,
                             status=64).err


def test_python_reads_what_we_make():
    for kind, version in (('v4', 4), ('v7', 7)):
        for text in firn('id', kind, '-n', '100').out.split():
            read = uuid.UUID(text)
            assert read.version == version and str(read) == text
            assert read.variant == uuid.RFC_4122


@pytest.fixture
def keys(tmp_path):
    def write(*lines, mode=0o600):
        path = str(tmp_path / 'keys')
        if os.path.exists(path):
            os.unlink(path)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, mode), 'w') as f:
            f.write(''.join(line + '\n' for line in lines))
        os.chmod(path, mode)
        return path
    return write


def test_seal_and_unseal(keys):
    ids = ['0', '1', '1616811104812684646', '18446744073709551615']
    old, new = 'a' * 32, '000102030405060708090a0b0c0d0e0f'
    path = keys(new, old)
    sealed = firn('seal', '--keys', path, *ids).out.split()
    assert sealed[2] == '3YLUbMWzVVFFdmsaGp703G'  # openssl's, see test_seal.c
    assert firn('unseal', '--keys', path, *sealed).out.split() == ids
    # from standard input, a wrong line is left out
    done = subprocess.run(
        [build.program('firn'), 'unseal', '--keys', path],
        input='\n'.join([sealed[0], 'x' * 22, sealed[1]]),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=build.clean_env())
    assert done.returncode == 1 and done.stdout.split() == ids[:2]
    assert len(done.stderr.splitlines()) == 1
    # the old key is gone: what it sealed is refused
    theirs = firn('seal', '--keys', keys(old), '7').out.strip()
    assert firn('unseal', '--keys', keys(new, old), theirs).out == '7\n'
    assert not firn('unseal', '--keys', keys(new), theirs, status=1).out
    assert not firn('unseal', '--keys', keys(new), '--purpose', 'x',
                    sealed[0], status=1).out


def test_keys_that_others_can_read(keys):
    for mode in (0o640, 0o604, 0o666):
        path = keys('a' * 32, mode=mode)
        assert 'chmod 600' in firn('seal', '--keys', path, '1', status=77).err
    assert 'line 2' in firn('seal', '--keys', keys('a' * 32, 'b' * 30), '1',
                            status=78).err


def test_a_thread_ends_after_its_library_was_closed():
    """What a thread holds is given back by the library that was closed."""
    path = build.BUILD + '/.libs/libfirn.so.0'
    if not os.path.exists(path):
        path = None
    code = '''
import _ctypes, ctypes, sys, threading
path = sys.argv[1]
made, closed = threading.Event(), threading.Event()
lib = ctypes.CDLL(path)
out = []
def work():
    ids = [(ctypes.c_ubyte * 16)() for _ in range(3)]
    for one in ids:
        assert lib.firn_uuid7(one) == 0
    out.extend(bytes(one) for one in ids)
    made.set()
    closed.wait()
t = threading.Thread(target=work)
t.start()
made.wait()
_ctypes.dlclose(lib._handle)
closed.set()
t.join()
assert out == sorted(set(out)) and len(out) == 3
print('ended')
'''
    if path is None:  # a build without shared libraries (sanitizers)
        return
    done = subprocess.run(['/usr/bin/python3', '-c', code, path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env=build.clean_env(), timeout=60)
    assert done.returncode == 0 and done.stdout == 'ended\n', done.stderr
