# SPDX-License-Identifier: Apache-2.0
"""The command's contract (firn(1)): exit statuses, --json, one line of words.

What is written here is what scripts depend on.
"""
import os
import re
import shutil
import signal
import socket
import stat
import string
import subprocess
import tempfile
import time

import pytest

from firnlab import build, wait
from firnlab.agent import QUICK
from firnlab.build import firn, run
from firnlab.process import free_port

SUBCOMMANDS = [['next'], ['decode'], ['floor'], ['status'], ['wait'],
               ['realm'], ['realm', 'create'], ['realm', 'show'],
               ['realm', 'renew'], ['fleet']]
RFC3339 = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$')
EPOCH_MS = 1735689600000

pytestmark = pytest.mark.short


@pytest.fixture(scope='module')
def nowhere():
    """A port at which nobody answers."""
    return '127.0.0.1:%d' % free_port()


def one_line(result):
    """One line on standard error that says what, where and why."""
    lines = result.err.strip().splitlines()
    assert len(lines) == 1, repr(result)
    assert lines[0].startswith('firn'), repr(result)
    assert not result.out, repr(result)
    return lines[0]


# ---- help and usage ---------------------------------------------------------

@pytest.mark.parametrize('words', [[]] + SUBCOMMANDS, ids=' '.join)
def test_help(words):
    result = firn(*words, '--help')
    assert result.out.startswith('usage: firn'), result
    assert result.err == ''
    for line in result.out.splitlines():
        assert len(line) <= 100, line
    assert firn(*words, '-h').out == result.out


@pytest.mark.parametrize('words', [[]] + SUBCOMMANDS, ids=' '.join)
def test_an_unknown_option_is_a_usage_error(words):
    result = firn(*words, '--no-such-option', status=64)
    assert 'no-such-option' in result.err
    assert not result.out


@pytest.mark.parametrize('words', [
    [], ['no-such-command'], ['realm'], ['realm', 'no-such'], ['floor'],
    ['next', '-n'], ['next', '-n', '0'], ['next', '-n', 'x'],
    ['next', '-n', '-1'], ['next', '-f', 'roman'], ['next', 'extra'],
    ['status', '--timeout'], ['decode', '--layout', '41/10', '1'],
    ['decode', '--layout', 'none', '1'], ['realm', 'create', '--bits', '64'],
], ids=' '.join)
def test_wrong_arguments_are_usage_errors(words):
    result = firn(*words, status=64)
    assert result.err.strip() and not result.out


def test_bits_that_make_too_many_are_added_up():
    for words in (['decode', '--layout', '41/10/14', '1'],
                  ['realm', 'create', '--first', '--bits', '41/10/14']):
        assert '65 bits, at most 64' in one_line(firn(*words, status=64))


def test_help_is_a_word_too():
    assert firn('help').out == firn('--help').out
    assert firn('realm', 'help').out == firn('realm', '--help').out
    for word in ('help', '--help', '-h'):
        assert firn(word, 'next').out == firn('next', '--help').out
        assert firn('realm', word, 'show').out == \
            firn('realm', 'show', '--help').out
        assert 'such' in firn(word, 'no-such', status=64).err
    assert run('firnd', '-h').out == run('firnd', '--help').out


def test_version():
    assert re.match(r'firn \d+\.\d+\.\d+$', firn('--version').out.strip())
    assert re.match(r'firnd \d+\.\d+\.\d+$',
                    run('firnd', '--version').out.strip())


def test_output_that_cannot_be_written_is_an_error():
    with open('/dev/full', 'w') as full:
        done = subprocess.run([build.program('firn'), 'decode', '--layout',
                               'firn', '1'], stdout=full,
                              stderr=subprocess.PIPE, env=build.clean_env())
    assert done.returncode == 1
    assert done.stderr


@pytest.mark.parametrize('flag', ['--version', '--help', '--check-config'])
def test_the_agents_output_that_cannot_be_written_is_an_error(flag):
    for where, words in (('>/dev/full', 'No space left on device'),
                         ('>&-', 'Bad file descriptor')):
        done = subprocess.run(['sh', '-c', 'exec "$0" "$1" ' + where,
                               build.program('firnd'), flag],
                              stderr=subprocess.PIPE, text=True,
                              env=build.clean_env())
        assert done.returncode == 1
        assert done.stderr == 'firnd: standard output: %s\n' % words


def test_a_reader_that_left_is_no_error(lab):
    """It ends as other programs do: by SIGPIPE, without a line."""
    agent = lab.agent(lab.realm()).up()
    for words in (['next', '-n', '1000000', '--timeout', '60000', '--socket',
                   agent.socket], ['--help'], ['--version'],
                  ['status', '--socket', agent.socket]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([build.program('firn')] + words, stdout=writing,
                              stderr=subprocess.PIPE, timeout=120,
                              env=build.clean_env())
        os.close(writing)
        assert done.returncode == -signal.SIGPIPE, done
        assert done.stderr == b''


@pytest.mark.parametrize('command', ['next', 'bench'])
def test_which_of_socket_and_realm_is_none(command):
    for path in ('', 'x' * 108):
        err = firn(command, '--socket', path, status=64).err
        assert '"%s": no path for a socket' % path in err
        assert 'FIRN_REALM' not in err
    err = firn(command, '--socket', '/nowhere', env={'FIRN_REALM': 'r' * 64},
               status=64).err
    assert '$FIRN_REALM "%s": no name for a realm' % ('r' * 64) in err
    err = firn('fleet', '--realm', '..', status=64).err
    assert 'neither . nor ..' in err


# ---- decode and floor, which need no agent -----------------------------------

def test_decode_json():
    value = (1000 << 22) | (17 << 12) | 5
    doc = firn('decode', '--layout', 'firn', '--json', value).json
    assert doc['id'] == str(value)
    assert doc['kind'] == 'firn'
    assert doc['time'] == '2025-01-01T00:00:01.000Z'
    assert int(doc['unix_ms']) == EPOCH_MS + 1000
    assert int(doc['worker']) == 17
    assert int(doc['sequence']) == 5


def test_decode_of_several_gives_a_list():
    docs = firn('decode', '--layout', 'firn', '--json', 1, 2).json
    assert [d['id'] for d in docs] == ['1', '2']
    docs = firn('decode', '--layout', 'firn', '--json', stdin='1\n2\n3\n').json
    assert [int(d['sequence']) for d in docs] == [1, 2, 3]


def digits(value, alphabet, width):
    text = ''
    while value:
        text = alphabet[value % len(alphabet)] + text
        value //= len(alphabet)
    return text.rjust(width, alphabet[0])


def test_decode_does_not_cut_a_line_at_a_nul():
    done = firn('decode', '--layout', 'firn', stdin='4\0garbage\n5\n',
                status=1)
    assert 'line 1' in done.err and 'NUL' in done.err
    assert done.out.count('\n') == 2, done.out  # the head, and the 5


def test_decode_takes_every_text_form():
    value = 1541815603606036480  # a tweet's
    upper, lower = string.ascii_uppercase, string.ascii_lowercase
    forms = [str(value), '%016x' % value,
             digits(value, string.digits + upper + lower, 11),
             digits(value, '0123456789ABCDEFGHJKMNPQRSTVWXYZ', 13)]
    docs = firn('decode', '--layout', 'twitter', '--json', *forms).json
    for form, doc in zip(forms, docs):
        assert doc['id'] == str(value), form
        assert doc['time'] == '2022-06-28T16:07:40.105Z', form


@pytest.mark.parametrize('text', ['', 'x!', '18446744073709551616', '-1',
                                  ' 1', '1 2'])
def test_decode_refuses_what_is_no_id(text):
    result = firn('decode', '--layout', 'firn', text, status=None)
    assert result.status in (1, 64), result
    assert result.err.strip()


def test_decode_without_an_agent_says_which_layout_it_took(tmp_path):
    result = firn('decode', '1', env={'FIRN_SOCKET': str(tmp_path / 'none')})
    assert 'using layout firn' in result.err and result.out
    assert result.err.count(str(tmp_path)) == 1


def test_decode_of_crockford_is_strict():
    text = '070X2XH2M0000'
    assert firn('decode', '--layout', 'firn', text).out
    firn('decode', '--layout', 'firn', text.lower(), status=64)


def test_floor_is_the_smallest_id_of_an_instant():
    out = firn('floor', '2025-01-01T00:00:01Z', '--layout', 'firn').out
    assert int(out) == 1000 << 22
    result = firn('floor', '2024-01-01T00:00:00Z', '--layout', 'firn',
                  status=64)
    assert '2025-01-01' in one_line(result)
    assert firn('floor', 'yesterday', '--layout', 'firn',
                status=64).err.strip()
    at = ('--layout', 'firn')
    assert (firn('floor', '2026-03-01', *at).out ==
            firn('floor', '2026-03-01T00:00:00Z', *at).out)
    result = firn('floor', '1772323200', *at, status=64)
    assert '1970-01-21' in one_line(result) and 'seconds' in result.err


# ---- nobody there -------------------------------------------------------------

@pytest.mark.parametrize('words', [['next'], ['status'], ['status', '--json'],
                                   ['wait', '--timeout', '300']],
                         ids=' '.join)
def test_no_agent_is_69(tmp_path, words):
    path = str(tmp_path / 'none.sock')
    start = time.monotonic()
    result = firn(*words, '--socket', path, status=69)
    assert path + ': no agent: No such file' in one_line(result)
    assert time.monotonic() - start < 15


@pytest.mark.parametrize('words', [['realm', 'show'], ['realm', 'renew'],
                                   ['realm', 'create', '--first'], ['fleet'],
                                   ['fleet', '--json']], ids=' '.join)
def test_no_zookeeper_is_69(nowhere, words):
    start = time.monotonic()
    result = firn(*words, '--zk', nowhere, '--realm', 'r', '--timeout', 1000,
                  status=69)
    assert nowhere in one_line(result)
    assert time.monotonic() - start < 15


def test_a_name_that_does_not_resolve_is_69():
    result = firn('realm', 'show', '--zk', 'nosuchhost.invalid', '--timeout',
                  8000, status=69)
    assert 'cannot resolve' in one_line(result)


def test_a_socket_that_is_not_allowed_is_77(tmp_path):
    path = tmp_path / 'closed.sock'
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
        s.listen(1)
        path.chmod(0)
        if os.geteuid() == 0:  # root is allowed everything: be someone else
            os.chmod(tmp_path, 0o755)
            result = as_nobody('next', '--socket', str(path))
            if result is None:
                pytest.fail('setpriv is missing (Debian package util-linux)')
        else:
            result = firn('next', '--socket', path, status=None)
    assert result.status == 77, result
    assert str(path) in one_line(result)


def as_nobody(*words):
    """The command as uid 65534, from a copy that it may read."""
    if shutil.which('setpriv') is None:
        return None
    with tempfile.TemporaryDirectory(dir='/tmp') as directory:
        os.chmod(directory, 0o755)
        shutil.copy(build.program('firn'), directory + '/firn')
        os.chmod(directory + '/firn', 0o755)
        argv = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups',
                directory + '/firn'] + list(words)
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, env=build.clean_env())
    return build.Result(argv, done)


# ---- with an agent --------------------------------------------------------------

@pytest.fixture
def agent(lab):
    realm = lab.realm()
    one = lab.agent(realm, conf=QUICK).up()
    one.of = realm
    return one


def test_next(agent):
    at = ('--socket', agent.socket)
    assert re.match(r'\d+\n$', firn('next', *at).out)
    ids = [int(x) for x in firn('next', '-n', 5000, *at).out.split()]
    assert len(ids) == 5000 and ids == sorted(set(ids))
    for form, pattern in (('dec', r'\d{10,20}'), ('hex', r'[0-9a-f]{16}'),
                          ('base62', r'[0-9A-Za-z]{11}'),
                          ('crockford', r'[0-9A-HJKMNP-TV-Z]{13}')):
        texts = firn('next', '-n', 3, '-f', form, *at).out.split()
        assert len(texts) == 3
        assert all(re.match(pattern + '$', t) for t in texts), texts
        docs = firn('decode', '--layout', 'firn', '--json', *texts).json
        assert {int(d['worker']) for d in docs} == {agent.worker()}, texts
    doc = firn('next', '-n', 3, '--json', *at).json
    ids = doc['ids'] if isinstance(doc, dict) else doc
    assert len(ids) == 3 and all(isinstance(i, str) for i in ids)


def test_next_from_the_environment(agent):
    env = {'FIRN_SOCKET': agent.socket, 'FIRN_REALM': agent.of.name}
    assert firn('next', env=env).out
    env['FIRN_REALM'] = 'another'
    result = firn('next', env=env, status=78)
    assert agent.of.name in one_line(result)


def test_decode_takes_the_agents_layout(lab):
    realm = lab.realm('--first', '--bits', '41/4/12')
    one = lab.agent(realm).up()
    value = firn('next', '--socket', one.socket).out.strip()
    doc = firn('decode', '--json', '--socket', one.socket, value).json
    assert int(doc['worker']) == one.worker() < 16
    assert abs(int(doc['unix_ms']) - time.time() * 1000) < 5000


def test_status_json(agent):
    firn('next', '-n', 10, '--socket', agent.socket)
    doc = firn('status', '--json', '--socket', agent.socket).json
    for key in ('state', 'reason', 'realm', 'worker', 'claim', 'counter',
                'mark_ms', 'skew_ms', 'peers', 'issued', 'clients',
                'version'):
        assert key in doc, key
    assert doc['state'] == 'serving' and doc['reason'] == ''
    assert doc['realm'] == agent.of.name
    assert doc['claim'] in agent.of.claims()
    assert doc['claim'].endswith('%010d' % int(doc['counter']))
    assert isinstance(doc['mark_ms'], str)
    assert int(doc['mark_ms']) > time.time() * 1000
    assert isinstance(doc['issued'], str) and int(doc['issued']) >= 10
    assert doc['peers'] == 0
    text = firn('status', '--socket', agent.socket).out
    assert 'serving' in text and agent.of.name in text
    firn('wait', '--timeout', 1000, '--socket', agent.socket)


def test_status_of_an_agent_that_refuses_is_75(lab):
    one = lab.agent('missing', conf=QUICK).start()
    one.refuses('no_realm', 20)
    at = ('--socket', one.socket)
    doc = firn('status', '--json', *at, status=75).json
    assert doc['reason'] == 'no_realm'
    result = firn('status', *at, status=75)
    assert 'no_realm' in result.out and 'no_realm' not in result.err
    assert len(result.err.splitlines()) == 1 and one.socket in result.err
    assert 'no_realm' in one_line(
        firn('next', '--timeout', 300, *at, status=75))
    assert one_line(firn('wait', '--timeout', 300, *at, status=75))


# ---- realm and fleet --------------------------------------------------------------

def zk(lab, name):
    return ('--zk', lab.server.hosts, '--realm', name)


def test_a_layout_as_bits_makes_a_realm(lab):
    """As everywhere else, a layout is a preset or bits."""
    realm = lab.realm('--first', '--layout', '41/5+5/12')
    layout = realm.contract()['layout']
    assert [layout[k + '_bits'] for k in
            ('time', 'worker', 'datacenter', 'sequence')] == [41, 10, 5, 12]
    result = firn('realm', 'create', '--first', '--layout', 'none',
                  *zk(lab, 'never'), status=64)
    assert 'twitter' in one_line(result) and '41/10/12' in result.err


def test_realm_create_show_and_again(lab):
    realm = lab.realm('--first', '--bits', '41/6/16', '--workers', '1-60')
    doc = firn('realm', 'show', '--json', *zk(lab, realm.name)).json
    contract = realm.contract()
    for key in ('format', 'uuid', 'generation', 'layout', 'epoch_ms',
                'tick_ms', 'not_before_ms', 'reserve_max_ms', 'workers'):
        assert doc[key] == contract[key], key
    assert doc['format'] == 1
    assert int(doc['workers']['first']) == 1
    assert int(doc['workers']['last']) == 60
    assert doc['layout']['worker_bits'] == 6
    text = firn('realm', 'show', *zk(lab, realm.name)).out
    assert contract['uuid'] in text and '41/6/16' in text
    # never a second ID space by a slip
    result = firn('realm', 'create', '--first', *zk(lab, realm.name),
                  status=78)
    assert realm.name in one_line(result)
    firn('realm', 'create', '--first', '--if-missing', *zk(lab, realm.name))
    for other, word in (('--layout twitter', 'another layout'),
                        ('--bits 41/7/15', 'another layout'),
                        ('--epoch 2025-02-01', 'another epoch'),
                        ('--workers 1-61', 'another range of worker IDs')):
        result = firn('realm', 'create', '--first', '--if-missing',
                      *other.split(), *zk(lab, realm.name), status=78)
        assert word in one_line(result)
    assert realm.contract() == contract


def test_realm_of_64_bits_says_when_the_sign_turns(lab):
    result = firn('realm', 'create', '--first', '--layout', 'discord',
                  *zk(lab, 'unsigned'))
    assert re.search(r'negative in a signed column from 20\d\d-\d\d-\d\d',
                     result.err)
    assert not firn('realm', 'create', '--first', *zk(lab, 'signed')).err


def test_a_chroot_that_is_missing_is_78(lab):
    at = ('--zk', lab.server.hosts + '/no-such', '--realm', 'r')
    for words in (['create', '--first'], ['show'], ['renew']):
        result = firn('realm', *words, *at, status=78)
        assert 'the chroot does not exist' in one_line(result)


def test_realm_create_wants_to_know_whether_ids_were_served(lab):
    """--if-missing needs one of the two said; without --first nothing is
    issued for as long as an old window may last."""
    firn('realm', 'create', '--if-missing', *zk(lab, 'unsaid'), status=64)
    before_ms = time.time() * 1000
    firn('realm', 'create', *zk(lab, 'careful'))
    doc = firn('realm', 'show', '--json', *zk(lab, 'careful')).json
    ahead = int(doc['not_before_ms']) - before_ms
    assert ahead >= int(doc['reserve_max_ms']) + 10000 - 1
    assert ahead <= int(doc['reserve_max_ms']) + 10000 + 30000


def test_realm_that_is_missing_is_78(lab):
    for words in (['show'], ['renew']):
        result = firn('realm', *words, *zk(lab, 'no-such-realm'), status=78)
        # with the line to type
        assert '`firn realm create --zk %s --realm no-such-realm`' % \
            lab.server.hosts in one_line(result)


def test_an_agent_without_a_realm_says_how_to_make_it(lab):
    one = lab.agent('not-made', conf=QUICK)
    one.start()
    line = '`firn realm create --zk %s --realm not-made`' % one.hosts
    wait.until(lambda: line in one.log(), 30, one.log)
    assert '--first if' in one.log()


def test_the_log_of_a_start(lab):
    """No refusal is told of that nobody could have met."""
    one = lab.agent(lab.realm()).up()
    wait.until(lambda: 'gate: starting -> serves, worker ID' in one.log(), 30,
               one.log)
    assert 'refuses' not in one.log()


def test_realm_from_file_keeps_uuid_and_raises_the_generation(lab, tmp_path):
    realm = lab.realm()
    backup = tmp_path / 'realm.json'
    backup.write_text(firn('realm', 'show', '--json',
                           *zk(lab, realm.name)).out)
    before = realm.contract()
    with lab.server.client() as zoo:
        zoo.delete_tree(realm.path)
    firn('realm', 'create', '--from', backup, *zk(lab, realm.name), status=64)
    firn('realm', 'create', '--from', backup, '--after-loss',
         *zk(lab, realm.name))
    after = realm.contract()
    assert after['uuid'] == before['uuid']
    assert after['layout'] == before['layout']
    assert int(after['generation'].split('-')[0]) == 1 + int(
        before['generation'].split('-')[0])
    assert int(after['not_before_ms']) > time.time() * 1000
    backup.write_text(firn('realm', 'show', *zk(lab, realm.name)).out)
    result = firn('realm', 'create', '--from', backup, '--after-loss',
                  *zk(lab, 'other'), status=78)
    assert '--json' in one_line(result)
    backup.write_text('{"format": 1,')
    result = firn('realm', 'create', '--from', backup, '--after-loss',
                  *zk(lab, 'other'), status=78)
    assert str(backup) in one_line(result)


def whole_fleet(lab, realm):
    """The document, once each agent's mark says that it serves."""
    doc = firn('fleet', '--json', *zk(lab, realm.name)).json
    return doc if all(a['state'] == 'serving' for a in doc['agents']) else None


def test_fleet_json(lab):
    realm = lab.realm()
    agents = [lab.agent(realm, conf=QUICK).start() for _ in range(3)]
    for one in agents:
        one.serving()
    doc = wait.until(lambda: whole_fleet(lab, realm), 10, lambda: repr(
        firn('fleet', '--json', *zk(lab, realm.name), status=None)))
    for key in ('agents', 'mean_offset_ms', 'spread_ms', 'alerts',
                'free_workers', 'auditor'):
        assert key in doc, key
    assert {int(a['worker']) for a in doc['agents']} == {
        one.worker() for one in agents}
    for row in doc['agents']:
        for key in ('worker', 'host', 'pid', 'state', 'reason', 'skew_ms',
                    'error_ms', 'mark_lead_ms', 'version'):
            assert key in row, key
        assert row['pid'] in {one.process.pid for one in agents}
    assert int(doc['free_workers']) == 1024 - 3
    assert doc['alerts'] == []
    text = firn('fleet', *zk(lab, realm.name)).out
    assert all(str(one.worker()) in text for one in agents)


# ---- firnd -------------------------------------------------------------------------

def firnd(*words, **options):
    return run('firnd', *words, **options)


def test_firnd_help_and_usage():
    assert firnd('--help').out.startswith('usage: firnd')
    for words in (['--no-such'], ['extra'], ['--realm']):
        assert firnd(*words, status=64).err.strip()


def test_check_config(tmp_path):
    """Prints the result and where each value came from; talks to nobody."""
    path = tmp_path / 'firnd.json'
    path.write_text('''{
        // where
        "realm": "from-file", /* and */ "renew_ms": 4000
    }''')
    result = firnd('--config', path, '--check-config', '--socket', '/tmp/s',
                   env={'FIRN_ZK': 'zk.example:2181'})
    out = result.out
    for key, value, source in (('realm', 'from-file', 'file'),
                               ('renew_ms', '4000', 'file'),
                               ('socket', '/tmp/s', 'flag'),
                               ('zookeeper', 'zk.example:2181', 'env'),
                               ('session_ms', '10000', 'default')):
        line = next(x for x in out.splitlines() if key in x.split()[0])
        assert value in line and source in line, line


@pytest.mark.parametrize('text,words', [
    ('{"realm": "a", "realm": "b"}', 'realm'),
    ('{"relm": "a"}', 'relm'),
    ('{"realm": 7}', 'realm'),
    ('{"renew_ms": -1}', 'renew_ms'),
    ('{"renew_ms": 1.5}', 'renew_ms'),
    ('{"renew_ms": "3000"}', 'renew_ms'),
    ('{"renew_ms": 90000, "reserve_ms": 60000}', 'renew_ms'),
    ('{"layout": "41/10"}', 'layout'),
    ('{\n "realm": "a"\n "socket": "b"}', 'line 3'),
    ('', 'empty'),
    ('[]', ''),
])
def test_a_configuration_that_is_wrong_is_78(tmp_path, text, words):
    path = tmp_path / 'firnd.json'
    path.write_text(text)
    for flags in (['--check-config'], []):
        result = firnd('--config', path, *flags, status=78, seconds=10)
        assert words in result.err and not result.out, result
        assert len(result.err.strip().splitlines()) == 1, result


def test_a_check_finds_what_cannot_start(tmp_path):
    path = tmp_path / 'conf.json'
    for text, words in (('{"socket_group": "no-such-group"}', 'no-such-group'),
                        ('{"static_worker": 1024}', 'at most 1023')):
        path.write_text(text)
        assert words in one_line(firnd('--config', path, '--check-config',
                                       status=78))
    path.write_text('{"socket_group": "0", "static_worker": 1023}')
    firnd('--config', path, '--check-config')


def test_a_configuration_that_is_missing_is_78(tmp_path):
    path = tmp_path / 'none.json'
    assert str(path) in firnd('--config', path, status=78, seconds=10).err


@pytest.mark.parametrize('conf, has, wanted', [
    ({'layout': '41/4/12'}, '41/10/12', '41/4/12, epoch_ms any'),
    # the same split, but a preset stands for its epoch
    ({'layout': 'twitter'}, 'epoch_ms %d' % EPOCH_MS,
     r'twitter \(41/5\+5/12\), epoch_ms 1288834974657'),
    ({'epoch': '2020-01-01T00:00:00Z'}, 'epoch_ms %d' % EPOCH_MS,
     'any, epoch_ms 1577836800000'),
], ids=['bits', 'preset', 'epoch'])
def test_a_layout_that_contradicts_the_realms_is_78(lab, conf, has, wanted):
    """Exit 78 with both values."""
    realm = lab.realm()
    one = lab.agent(realm, conf=dict(QUICK, **conf))
    one.may_fail = True
    one.start()
    assert one.process.wait(20) == 78
    assert re.search('has layout .*%s.*; configured is layout %s' %
                     (has, wanted), one.log())


@pytest.mark.parametrize('conf', [
    {'layout': 'firn'}, {'layout': '41/10/12'},
    # an epoch that is said is instead of the preset's
    {'layout': 'twitter', 'epoch': EPOCH_MS},
], ids=['preset', 'bits', 'epoch'])
def test_a_layout_that_is_the_realms_serves(lab, conf):
    one = lab.agent(lab.realm(), conf=dict(QUICK, **conf))
    one.up()


def test_one_instance_for_each_socket(agent):
    """The second leaves the first one's socket alone."""
    result = firnd('--config', agent.base + '.json', status=None, seconds=20)
    assert result.status in (1, 78), result
    assert agent.socket in result.err
    assert firn('next', '--socket', agent.socket).out


def test_the_sockets_mode_is_right_from_birth(lab):
    realm = lab.realm()
    os.umask(0)
    try:
        one = lab.agent(realm, conf=dict(QUICK, socket_mode='0600')).up()
    finally:
        os.umask(0o022)
    assert stat.S_IMODE(os.stat(one.socket).st_mode) == 0o600
    one.end()
    assert not os.path.exists(one.socket)


def test_log_lines_have_priorities_only_under_the_journal(agent, lab):
    assert not re.search(r'^<\d>', agent.log(), re.M)
    one = lab.agent(agent.of, conf=QUICK)
    with open(one.base + '.log', 'w') as f:
        place = os.fstat(f.fileno())
    one.env = {'JOURNAL_STREAM': '%d:%d' % (place.st_dev, place.st_ino)}
    one.up()
    for line in one.log().splitlines():
        assert re.match(r'<[0-7]>', line), line
