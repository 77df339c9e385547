# SPDX-License-Identifier: Apache-2.0
"""Access to ZooKeeper: who may write a realm, and that the password stays
where it is.
"""
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

from firnlab import build, wait
from firnlab.agent import QUICK
from firnlab.build import CONFIG, NOT_ALLOWED, USAGE, firn
from firnlab.jute import (NO_AUTH, EPHEMERAL, SEQUENTIAL, Zoo, ZooError)
from firnlab.load import check
from firnlab.process import Process

PASSWORD = 'Quatschkopf-4711'
OTHER = 'u:another-password'
ALL = 31


class Auth:
    """Files with passwords."""

    def __init__(self, lab):
        self.lab = lab
        self.file = self.write('auth', 'ids:' + PASSWORD)

    def write(self, name, text, mode=0o600):
        path = '%s/%s' % (self.lab.dir, name)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, 'w') as f:
            f.write(text + '\n')
        os.chmod(path, mode)
        return path

    def agent(self, realm, path=None, **conf):
        return self.lab.agent(
            realm, conf=dict(QUICK, auth_file=path or self.file, **conf))

    def firn(self, *args, path=None, **options):
        env = {'FIRN_AUTH_FILE': path or self.file,
               'FIRN_ZK': self.lab.server.hosts}
        return firn(*args, env=env, **options)

    def knows(self):
        """A client of the server's that has shown the password."""
        zoo = Zoo(self.lab.server.port)
        zoo.auth('ids:' + PASSWORD)
        return zoo


@pytest.fixture
def auth(lab):
    return Auth(lab)


def closed_realm(auth, *flags):
    realm = auth.lab.realm('--first', '--acl', '--auth-file', auth.file,
                           *flags)
    return realm


def tree(zoo, path):
    """The path and all below it."""
    yield path
    with contextlib.suppress(ZooError):
        for name in zoo.list(path)[0]:
            yield from tree(zoo, path + '/' + name)


def lists(zoo, realm):
    """{path: [(rights, scheme, id)]} of a whole realm."""
    found = {}
    for path in tree(zoo, realm.path):
        with contextlib.suppress(ZooError):  # a claim may have gone
            found[path] = sorted(zoo.get_acl(path))
    return found


def is_closed(acl):
    return ('world', 'anyone', 1) in acl and len(acl) == 2 and all(
        scheme == 'world' and rights == 1
        or scheme == 'digest' and who.startswith('ids:') and rights == ALL
        for scheme, who, rights in acl)


def all_closed(auth, realm):
    with auth.knows() as zoo:
        found = lists(zoo, realm)
    wrong = {p: a for p, a in found.items() if not is_closed(a)}
    assert not wrong, wrong
    return found


def denied(call, *args):
    with pytest.raises(ZooError) as e:
        call(*args)
    assert e.value.code == NO_AUTH, e.value


def test_a_closed_realm_serves_and_strangers_only_read(lab, auth):
    realm = closed_realm(auth)
    agents = [auth.agent(realm).up() for _ in range(2)]
    loads = [lab.load(a, threads=2, rate=2000) for a in agents]
    for load in loads:
        load.takes(200)
    worker = agents[0].worker()
    claim = agents[0].status()['claim']
    found = all_closed(auth, realm)
    for path in (realm.path, realm.claims_path, realm.marks_path,
                 realm.path + '/fleet', realm.mark_path(worker),
                 realm.claims_path + '/' + claim):
        assert path in found, sorted(found)

    with lab.server.client() as stranger:
        mark = realm.mark_path(worker)
        data, stat = stranger.get(mark)
        denied(stranger.set, mark, data)
        denied(stranger.delete, mark)
        denied(stranger.allow, mark, ALL)
        denied(stranger.create, realm.marks_path + '/0999', data)
        denied(stranger.create, realm.claims_path + '/' + claim[:-10], b'{}',
               EPHEMERAL | SEQUENTIAL)
        denied(stranger.delete, realm.claims_path + '/' + claim)
        denied(stranger.set, realm.path, b'{"format":99}')
        denied(stranger.set, realm.path + '/fleet', b'{}')
        stranger.auth(OTHER)  # a password that is another's is none
        denied(stranger.set, mark, data)
        assert stranger.get(mark)[1].czxid == stat.czxid

    # who only looks needs no password
    doc = firn('fleet', '--json', '--zk', lab.server.hosts, '--realm',
               realm.name, status=None).json
    assert {int(a['worker']) for a in doc['agents']} == {
        a.worker() for a in agents}
    assert 'denied' not in json.dumps(doc['alerts'])
    firn('realm', 'show', '--zk', lab.server.hosts, '--realm', realm.name)
    refused = firn('realm', 'renew', '--zk', lab.server.hosts, '--realm',
                   realm.name, status=NOT_ALLOWED)
    assert 'not allowed' in refused.err and '--auth-file' in refused.err

    # an agent of the realm's takes the place of one that was killed
    agents[0].kill()
    agents[0].forget()
    agents[0].up()
    for load in loads:
        load.takes(200)
        load.stop()
    check(loads)
    auth.firn('realm', 'renew', '--realm', realm.name)
    all_closed(auth, realm)


def zoo_has(lab, path):
    with lab.server.client() as zoo:
        return zoo.exists(path) is not None


def test_without_the_password_an_agent_says_so_and_goes_on_trying(lab, auth):
    realm = closed_realm(auth)
    wrong = auth.write('wrong', OTHER)
    agents = [lab.agent(realm, conf=QUICK).start(),
              auth.agent(realm, path=wrong).start()]
    for agent, words in zip(agents, ('auth_file must name a file',
                                     'auth_file holds another')):
        agent.refuses('no_claim', 20)
        line = '%s: not allowed (its access list): %s' % (
            realm.claims_path, words)
        wait.until(lambda: line in agent.log(), 20, agent.tail)
        said = agent.log().count(words)
        agent.wait_status(
            lambda d: d['state'] == 'claiming', 5, 'goes on trying')
        assert agent.log().count(words) == said == 1
    assert not realm.claims() and not realm.marks()
    for args in (('realm', 'acl', '--open'), ('realm', 'acl')):
        result = auth.firn(*args, '--realm', realm.name, path=wrong,
                           status=NOT_ALLOWED)
        assert realm.path in result.err and 'not allowed' in result.err

    # the password is read again for each session: no restart is needed
    auth.write('wrong', 'ids:' + PASSWORD)
    agents[1].freeze()
    with auth.knows() as zoo:
        session = lab.server.sessions()
        wait.until(lambda: lab.server.sessions() < session, 30,
                   'the session ends')
        zoo.sync()
    agents[1].thaw()
    agents[1].serving()
    # the other one serves once the realm is open
    auth.firn('realm', 'acl', '--open', '--realm', realm.name)
    agents[0].serving()


def test_a_realm_that_may_not_be_read_is_not_one_that_is_missing(lab, auth):
    realm = lab.realm()
    with lab.server.client() as zoo:
        zoo.allow(realm.path, ALL - 1)
        agent = lab.agent(realm, conf=QUICK).start()
        agent.wait_status(lambda d: 'not allowed to read it' in d['words'],
                          20, 'says why')
        assert 'not been found' not in json.dumps(agent.status())
        assert 'does not exist' not in agent.log()
        assert realm.path + ': not allowed' in agent.log()
        for command in ('fleet', 'realm show', 'realm renew'):
            result = firn(*command.split(), '--zk', lab.server.hosts,
                          '--realm', realm.name, status=NOT_ALLOWED)
            assert 'not allowed' in result.err, result
        zoo.allow(realm.path, ALL)
        agent.serving()


def test_a_live_tree_is_closed_and_opened_under_load(lab, auth):
    realm = lab.realm()
    agents = [auth.agent(realm).up() for _ in range(3)]
    loads = [lab.load(a, threads=2, rate=2000) for a in agents]
    for load in loads:
        load.takes(200)
    for _ in range(3):
        done = auth.firn('realm', 'acl', '--realm', realm.name)
        found = all_closed(auth, realm)
        # three marks and claims, three parents and the realm, at least
        assert int(re.search(r': (\d+) nodes', done.out).group(1)) >= 10
        assert len(found) >= 10
        for load in loads:
            load.takes(100)
        done = auth.firn('realm', 'acl', '--open', '--realm', realm.name)
        assert 'everybody' in done.out
        with lab.server.client() as zoo:
            for path, acl in lists(zoo, realm).items():
                assert acl == [('world', 'anyone', ALL)], (path, acl)
        for load in loads:
            load.takes(100)
    for load in loads:
        assert load.stop()['failed'] == 0
    check(loads)
    # what a stranger has closed is named, and the rest is done
    foreign = realm.marks_path + '/0777'
    with lab.server.client() as zoo:
        zoo.create(foreign)
        zoo.allow(foreign, 1)
    result = auth.firn('realm', 'acl', '--realm', realm.name,
                       status=NOT_ALLOWED)
    assert result.err.count('not allowed') == 1 and foreign in result.err
    with auth.knows() as zoo:
        left = [p for p, a in lists(zoo, realm).items() if not is_closed(a)]
    assert left == [foreign]


def test_a_realm_that_is_restored_is_as_closed_as_it_was(own_lab):
    lab = own_lab
    lab.own_server()
    auth = Auth(lab)
    realm = closed_realm(auth, '--reserve-max', '1000')
    backup = lab.dir + '/realm.json'
    with open(backup, 'w') as f:
        f.write(auth.firn('realm', 'show', '--json', '--realm',
                          realm.name).out)
    agent = auth.agent(realm, session_ms=1000, renew_ms=200,
                       op_deadline_ms=150, reserve_ms=1000).up()
    back = ('realm', 'create', '--after-loss', '--from', backup,
            '--skew-refuse', '0', '--realm', realm.name)
    firn(*back, '--zk', lab.server.hosts, status=NOT_ALLOWED)
    auth.firn(*back)  # over what is there
    wait.until(realm.marks, 20, 'a mark of the next generation')
    agent.serving()
    all_closed(auth, realm)
    with open(backup, 'w') as f:  # of the contract that was lost
        f.write(auth.firn('realm', 'show', '--json', '--realm',
                          realm.name).out)

    lab.server.kill()
    lab.server.wipe()
    lab.server.start()
    auth.firn(*back)
    agent.wait_status(lambda d: d['state'] == 'serving'
                      and zoo_has(lab, realm.path), 30, 'serves again')
    wait.until(realm.marks, 20, 'a new mark')
    all_closed(auth, realm)


def test_create_with_acl(lab, auth):
    name = 'r' + os.urandom(4).hex()
    flags = ('realm', 'create', '--first', '--acl', '--realm', name)
    err = firn(*flags, '--zk', lab.server.hosts, status=USAGE).err
    assert '--acl needs --auth-file' in err
    err = firn('realm', 'acl', '--realm', name, '--zk', lab.server.hosts,
               status=USAGE).err
    assert '--auth-file FILE' in err
    auth.firn(*flags)
    auth.firn(*flags, '--if-missing')
    auth.firn('realm', 'acl', '--open', '--realm', name)
    err = auth.firn(*flags, '--if-missing', status=CONFIG).err
    assert 'open to all' in err
    open_one = lab.realm()  # a password alone closes nothing
    auth.firn('realm', 'renew', '--realm', open_one.name)
    with lab.server.client() as zoo:
        for acl in lists(zoo, open_one).values():
            assert acl == [('world', 'anyone', ALL)]


# ---- the file ---------------------------------------------------------------

def test_the_files_mode_is_checked(lab, auth):
    realm = lab.realm()
    missing = lab.dir + '/nowhere'
    cases = [(auth.write('wide', 'ids:' + PASSWORD, 0o644), 'group or others'),
             (auth.write('group', 'ids:' + PASSWORD, 0o640),
              'group or others'),
             (auth.write('none', PASSWORD), 'one line, user:password'),
             (lab.dir, 'regular file'), (missing, 'No such file')]
    for path, words in cases:
        agent = auth.agent(realm, path=path)
        agent.may_fail = True
        for flags in ([], ['--check-config']):
            agent.start(*flags)
            assert agent.process.wait(20) == CONFIG
            assert words in agent.log(), agent.tail()
            assert len(agent.log().splitlines()) == 1, agent.log()
            assert PASSWORD not in agent.log()
            os.truncate(agent.process.log, 0)
        result = auth.firn('fleet', '--realm', realm.name, path=path,
                           status=CONFIG)
        assert words in result.err and len(result.err.splitlines()) == 1
        assert PASSWORD not in result.err


def test_a_file_that_goes_wrong_later_ends_nothing(lab, auth):
    realm = closed_realm(auth)
    agent = auth.agent(realm).up()
    os.chmod(auth.file, 0o644)
    agent.process.signal(signal.SIGHUP)
    wait.until(lambda: 'reload: auth_file: ' in agent.log(), 20, agent.tail)
    assert agent.state() == 'serving'
    with agent_expired(lab, agent):
        wait.until(lambda: 'zookeeper: auth_file: ' in agent.log(), 30,
                   agent.tail)
    os.chmod(auth.file, 0o600)
    agent.wait_status(lambda d: d['state'] == 'serving', 30, 'is back')
    assert PASSWORD not in agent.log()


@contextlib.contextmanager
def agent_expired(lab, agent):
    """Frozen until its session is over, then let go."""
    before = lab.server.sessions()
    agent.freeze()
    wait.until(lambda: lab.server.sessions() < before, 30, 'session over')
    agent.thaw()
    yield


# ---- where the password is not ------------------------------------------------

def test_the_password_is_in_no_log_and_no_process_list(lab, auth):
    realm = closed_realm(auth)
    agent = auth.agent(realm, log_level='debug').up()
    with open('/proc/%d/cmdline' % agent.process.pid, 'rb') as f:
        seen = f.read()
    with open('/proc/%d/environ' % agent.process.pid, 'rb') as f:
        seen += f.read()
    seen += json.dumps(agent.status()).encode()
    seen += auth.firn('realm', 'show', '--realm', realm.name).out.encode()
    shown = build.run('firnd', '--config', agent.base + '.json',
                      '--check-config').out
    assert re.search('^auth_file +"%s"' % re.escape(auth.file), shown, re.M)
    seen += shown.encode()
    agent.end()
    # what it left: logs, state, configuration
    files = [n for n in glob.glob(lab.dir + '/**', recursive=True)
             if os.path.isfile(n) and n != auth.file]
    assert agent.process.log in files
    for name in files:
        with open(name, 'rb') as f:
            seen += f.read()
    assert b'auth_file' in seen  # it was the right log
    assert PASSWORD.encode() not in seen


USER = 65534


@pytest.fixture
def den():
    """A directory of a plain user's, with a firnd that he may run."""
    path = tempfile.mkdtemp(prefix='firn-acl-', dir='/tmp')
    shutil.copy(build.program('firnd'), path + '/firnd')
    os.chmod(path + '/firnd', 0o755)
    os.chown(path, USER, USER)
    yield path
    shutil.rmtree(path)


def as_user(*argv):
    return ['setpriv', '--reuid', str(USER), '--regid', str(USER),
            '--clear-groups', '--', *argv]


def firnd_of_user(den, name, *flags):
    socket = '%s/%s.sock' % (den, name)
    no_limit = ['sh', '-c', 'ulimit -S -c "$(ulimit -H -c)"; exec "$@"', 'sh']
    process = Process(as_user(*no_limit, den + '/firnd', '--socket', socket,
                              *flags),
                      '%s/%s.log' % (den, name), env=build.clean_env(),
                      cwd=den)
    firn('wait', '--socket', socket, '--timeout', 60000)
    return process


def maps_of(process):
    """What another process of its user's sees of its memory."""
    return subprocess.run(as_user('cat', '/proc/%d/maps' % process.pid),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def abort(process):
    """Did the kernel write its memory?"""
    os.kill(process.pid, signal.SIGABRT)
    _, status = os.waitpid(process.pid, 0)
    process.popen.returncode = -signal.SIGABRT  # Process lost it to us
    assert not process.running()
    return os.WCOREDUMP(status)


def test_no_core_dump_and_no_debugger(lab, den):
    """The client's copy of the password lives as long as the session does.
    Root alone may read it, as it may read the file."""
    assert os.geteuid() == 0, 'this test takes two users'
    with open(den + '/auth', 'w') as f:
        f.write('ids:' + PASSWORD)
    os.chmod(den + '/auth', 0o600)
    os.chown(den + '/auth', USER, USER)
    where = ['--zk', lab.server.hosts, '--realm', lab.realm().name]
    agent = firnd_of_user(den, 'agent', *where, '--auth-file', den + '/auth')
    control = firnd_of_user(den, 'control', *where)
    assert b'firnd' in maps_of(control).stdout
    refused = maps_of(agent)
    assert not refused.stdout and b'Permission denied' in refused.stderr
    dumped = abort(control)
    assert not abort(agent)
    dumps = [open(n, 'rb').read() for n in glob.glob(den + '/*core*')]
    print('a core of the control: %s, %d files' % (dumped, len(dumps)))
    assert not any(PASSWORD.encode() in d for d in dumps)
    if dumped and dumps:  # the kernel may have another place for them
        assert any(lab.server.hosts.encode() in d for d in dumps)
