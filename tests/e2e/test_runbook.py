# SPDX-License-Identifier: Apache-2.0
"""contrib/RUNBOOK.md, played: each incident is made for real, and the commands
of its section are run in their order.

A block of commands that only look is repeated until it says what the document
says; every other one is run once.  `systemctl ... firnd` is done to the test's
agent, and `journalctl` shows its log.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import time
import uuid

import pytest

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import SOURCE, clean_env, firn, program
from firnlab.jute import EPHEMERAL, MAY_ALL, READ, SEQUENTIAL, WRITE
from firnlab.load import check, numbers
from firnlab.realm import CLAIM

RUNBOOK = SOURCE + '/contrib/RUNBOOK.md'
HOUR = 3600
# Renewals often, so that little is waited for.
SWIFT = {'session_ms': 4000, 'renew_ms': 300, 'op_deadline_ms': 250,
         'reserve_ms': 60000, 'audit_ms': 1000}
LOOKS = re.compile(r'firn (status|fleet|wait|realm show|floor)\b|firnd --version'
                   r'|journalctl ')
PATIENCE = 40  # of a block that looks
FENCE = re.compile(r'^```(\w*)\n(.*?)^```$', re.M | re.S)


# ---- the document ------------------------------------------------------------

def text():
    with open(RUNBOOK) as f:
        return f.read()


def without_blocks(t):
    return FENCE.sub('', t)


def sections():
    """{heading: its text}; a # in a block is no heading."""
    found, name, inside = {}, None, False
    for line in text().splitlines(True):
        inside ^= line.startswith('```')
        if line.startswith('#') and not inside:
            name = line.lstrip('#').strip()
            assert name not in found, name
            found[name] = ''
        elif name:
            found[name] += line
    return found


def anchor(heading):
    return re.sub(r'[^\w -]', '', heading.lower()).replace(' ', '-')


class Command:
    def __init__(self, line):
        found = re.match(r'(.*?)\s+# exit (\d+)$', line)
        self.line, self.status = (found[1], int(found[2])) if found \
            else (line.strip(), 0)
        self.looks = LOOKS.match(self.line) is not None


class Block:
    """Commands, and what they must say."""

    def __init__(self, commands, words):
        self.commands = [Command(x) for x in commands.splitlines() if x]
        self.words = [' '.join(x.split()) for x in words.splitlines() if x]
        self.looks = all(c.looks for c in self.commands)

    def missing(self, out):
        """The first line of words that does not come, after the one before."""
        out = '\n'.join(' '.join(x.split()) for x in out.splitlines())
        at = 0
        for words in self.words:
            found = re.compile('[^\n]*'.join(
                re.escape(part.strip()) for part in words.split('...'))
                ).search(out, at)
            if not found:
                return words
            at = found.end()
        return None


class Section:
    def __init__(self, book, name):
        self.book, self.name = book, name
        found = FENCE.findall(sections()[name])
        self.json = [t for kind, t in found if kind == 'json']
        self.blocks = []
        for i, (kind, commands) in enumerate(found):
            after = found[i + 1] if i + 1 < len(found) else ('', '')
            if kind == 'sh':
                self.blocks.append(Block(
                    commands, after[1] if after[0] == 'text' else ''))
        assert self.blocks, 'no commands in ' + name

    def next(self, agent):
        """Plays the next block on this agent's host."""
        block = self.blocks.pop(0)
        if not block.looks:
            wrong, out = self.book.run(block, agent)
            assert not wrong, '%s: %s\n%s' % (self.name, wrong, out)
            return self
        seen = {}

        def look():
            seen['wrong'], seen['out'] = self.book.run(block, agent)
            return not seen['wrong']
        wait.until(look, PATIENCE, lambda: '%s: %s\n%s\n%s' % (
            self.name, seen['wrong'], seen['out'], agent.tail()), 0.2)
        return self

    def rest(self, agent):
        while self.blocks:
            self.next(agent)


def plays(*names):
    def mark(test):
        test.plays = names
        return test
    return mark


class Book:
    """The sections that a test plays, and an operator's shell."""

    def __init__(self, lab, names):
        self.lab = lab
        self.sections = {name: Section(self, name) for name in names}
        self.bin = lab.dir + '/bin'
        os.makedirs(self.bin)
        for name in ('firn', 'firnd'):
            self._script(name, 'exec %s "$@"' % shlex.quote(program(name)))
        self._script('journalctl', 'exec cat "$LAB_LOG"')

    def _script(self, name, line):
        with open(self.bin + '/' + name, 'w') as f:
            f.write('#!/bin/sh\n%s\n' % line)
        os.chmod(f.name, 0o755)

    def __getitem__(self, name):
        return self.sections[name]

    def run(self, block, agent):
        """(what is wrong, all output)"""
        out = ''
        for command in block.commands:
            status, said = self._command(command.line, agent)
            out += '$ %s\n%s' % (command.line, said)
            if status != command.status:
                return 'status %d of %s' % (status, command.line), out
        words = block.missing(out)
        return words and 'does not say "%s"' % words, out

    def _command(self, line, agent):
        service = re.match(r'systemctl (stop|start|restart) firnd$', line)
        if service:
            if service[1] != 'start':
                agent.end()
            if service[1] != 'stop':
                agent.start()
            return 0, ''
        done = subprocess.run(
            ['sh', '-c', line], cwd=self.lab.dir, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=180, env=clean_env({
                'PATH': self.bin + ':' + os.environ['PATH'],
                'FIRN_ZK': agent.hosts, 'FIRN_REALM': agent.realm,
                'FIRN_SOCKET': agent.socket, 'LAB_LOG': agent.base + '.log'}))
        return done.returncode, done.stdout


@pytest.fixture
def operator(bare_lab, request):
    """A book of the sections that the test plays: all of each, in the end."""
    book = Book(bare_lab, request.function.plays)
    yield book
    report = getattr(request.node, 'report_call', None)
    if report is not None and report.passed:
        left = [s.name for s in book.sections.values() if s.blocks]
        assert not left, 'not played to the end: %s' % left


def test_each_link_leads_somewhere_and_each_section_is_played():
    found = sections()
    anchors = {anchor(name) for name in found}
    for target in re.findall(r'\]\(#([^)]*)\)', without_blocks(text())):
        assert target in anchors, target
    with_commands = {name for name, body in found.items()
                     if any(kind == 'sh' for kind, _ in FENCE.findall(body))}
    played = [name for test in globals().values()
              for name in getattr(test, 'plays', ())]
    assert sorted(played) == sorted(with_commands)
    kinds = {kind for kind, _ in FENCE.findall(text())}
    assert kinds == {'sh', 'text', 'json', 'console'}, kinds


# ---- clocks --------------------------------------------------------------------

@plays('First look', 'skew_warn', 'clock_step', 'clock_unsynced',
       'A clock wrong by hours', 'Leap seconds')
def test_clocks(lab, operator):
    realm = lab.realm()
    good, odd = [lab.host(realm, conf=SWIFT).start() for _ in range(2)]
    for host in (good, odd):
        host.serving()
    operator['First look'].rest(odd)
    operator['clock_unsynced'].rest(odd)
    operator['Leap seconds'].rest(odd)
    wrong = lab.host(realm, HOUR, conf=SWIFT).start()
    operator['A clock wrong by hours'].next(wrong)
    assert good.state() == odd.state() == 'serving'
    wrong.clock.step(-HOUR)
    operator['A clock wrong by hours'].rest(wrong)
    odd.clock.step(1.5)
    operator['skew_warn'].next(odd)
    odd.clock.step(-1.5)
    operator['skew_warn'].rest(odd)
    odd.clock.step(-1000)
    operator['clock_step'].next(odd)
    odd.clock.step(1000)
    operator['clock_step'].rest(odd)


@plays('A fleet set back together')
def test_a_fleet_set_back(lab, operator):
    realm = lab.realm()
    hosts = [lab.host(realm, conf=SWIFT).start() for _ in range(2)]
    loads = []
    for host in hosts:
        host.serving()
        host.wait_status(lambda d: d['peers'] == 1, 20, 'a peer')
        loads.append(lab.load(host, count=1000, timeout=5000))
        loads[-1].finish()
    for host in hosts:
        host.clock.step(-HOUR)
    section = operator['A fleet set back together']
    section.next(hosts[0])
    hosts[1].refuses('clock_back', 20)
    for host in hosts:
        host.conf.update(json.loads(section.json[0]))
    hosts[1].end()
    hosts[1].start()
    section.rest(hosts[0])
    hosts[1].serving()
    for host in hosts:
        loads.append(lab.load(host, count=1000, timeout=5000))
        loads[-1].finish()
    check(loads, workers=numbers([h.worker() for h in hosts]))


# ---- ZooKeeper -----------------------------------------------------------------

@plays('Session storm', 'ZooKeeper gone', 'window_low')
def test_zookeeper_gone(own_lab, operator):
    server = own_lab.own_server(tick=500)
    realm = own_lab.realm()
    proxy = own_lab.proxy()
    agents = [own_lab.agent(realm, hosts=proxy.hosts, conf=dict(
        SWIFT, session_ms=2000, reserve_ms=8000)).up() for _ in range(2)]
    for agent in agents:
        agent.reserves(6000)
    workers = realm.settles(agents)
    proxy.hole()
    wait.until(lambda: realm.claims() == [], 30, 'all sessions expire')
    proxy.heal()
    wait.until(lambda: len(realm.claims()) == 2, 30, 'new claims')
    operator['Session storm'].rest(agents[0])
    assert realm.settles(agents) == workers
    agents[0].reserves(6000)
    server.kill()
    gone = operator['ZooKeeper gone']
    gone.next(agents[0])
    operator['window_low'].rest(agents[0])
    gone.next(agents[0]).next(agents[0])
    server.start()
    gone.rest(agents[0])
    assert realm.settles(agents, 30) == workers


@plays("ZooKeeper's data lost", "ZooKeeper's data set back")
def test_data_lost_and_set_back(own_lab, operator):
    """Two ensembles, so that the two waits are one."""
    conf = dict(SWIFT, session_ms=1000, reserve_ms=1500)
    agents, realms, loads = [], [], []
    for _ in range(2):
        own_lab.own_server(tick=500)
        realms.append(own_lab.realm('--first', '--reserve-max', '1500'))
        agents.append(own_lab.agent(realms[-1], conf=conf).up())
        loads.append(own_lab.load(agents[-1], rate=500, timeout=100))
        loads[-1].takes(50)
    lost, back = realms
    with open(own_lab.dir + '/realm.json', 'w') as f:
        f.write(firn('realm', 'show', '--json', '--zk', lost.server.hosts,
                     '--realm', lost.name).out)
    for realm in realms:
        realm.server.kill()
    lost.server.wipe()
    lost.server.start()
    back.server.save('early')
    back.server.start()
    written = back.marks()
    loads[1].takes(50, 60)
    wait.until(lambda: back.marks() != written, 20, 'newer marks')
    back.server.kill()
    back.server.roll_back('early')
    back.server.start()
    operator["ZooKeeper's data lost"].next(agents[0]).next(agents[0])
    operator["ZooKeeper's data set back"].rest(agents[1])
    operator["ZooKeeper's data lost"].rest(agents[0])
    for load in loads:
        load.takes(50, 60)
        load.stop()
        check([load])


# ---- worker IDs, claims, marks -------------------------------------------------

@plays('Worker IDs exhausted')
def test_worker_ids_exhausted(lab, operator):
    """Who waits has the ID of one that stops, and nobody deletes a mark."""
    realm = lab.realm('--first', '--workers', '0-1')
    first, second = [lab.agent(realm).up() for _ in range(2)]
    marks = realm.marks()
    late = lab.agent(realm, conf=SWIFT).start()
    section = operator['Worker IDs exhausted']
    section.next(late)
    left = first.worker()
    first.end()
    section.rest(late)
    assert late.worker() == left
    assert {w: m['stat'].czxid for w, m in marks.items()} == \
        {w: m['stat'].czxid for w, m in realm.marks().items()}


@plays('no_realm', 'epoch_ending', 'duplicate_claim', 'garbled_node',
       'denied_node', 'foreign_node', 'agent_stale')
def test_the_realm_and_what_is_in_it(lab, operator):
    agent = lab.agent(lab.unused_name(), conf=SWIFT).start()
    # 31 bits of milliseconds from then end in five seconds
    epoch_ms = int(time.time() * 1000) + 5000 - (1 << 31)
    ending = lab.realm('--first', '--bits', '31/10/12', '--epoch',
                       str(epoch_ms))
    operator['epoch_ending'].rest(lab.agent(ending, conf=SWIFT).start())
    operator['no_realm'].rest(agent)
    agent.reserves(50000)
    realm = type(lab.realm())(lab.server, agent.realm)
    with lab.server.client() as zoo:
        claim = [n for n in realm.claims() if CLAIM.match(n)][0]
        second = '%s-w%04d-' % (uuid.uuid4(), agent.worker())
        node = zoo.create('%s/%s' % (realm.claims_path, second), b'{}',
                          EPHEMERAL | SEQUENTIAL)
        operator['duplicate_claim'].rest(agent)
        zoo.delete(node)
        assert realm.claims() == [claim]
        used = agent.worker()
        for worker, data in ((used + 1, b'not json'), (used + 2, b'{}')):
            zoo.create(realm.mark_path(worker), data, 0)
        zoo.allow(realm.mark_path(used + 2), MAY_ALL - READ)
        zoo.create(realm.marks_path + '/lost+found', b'', 0)
        zoo.allow(realm.mark_path(used), MAY_ALL - WRITE)
    for name in ('garbled_node', 'denied_node', 'foreign_node', 'agent_stale'):
        operator[name].rest(agent)


@plays('marks_deleted')
def test_marks_deleted(lab, operator):
    realm = lab.realm('--first', '--reserve-max', '1500')
    agent = lab.agent(realm, conf=dict(SWIFT, reserve_ms=1500,
                                       skew_refuse_ms=1000)).up()
    load = lab.load(agent, rate=500, timeout=100).takes(50)
    with lab.server.client() as zoo:
        old = agent.worker()
        zoo.delete(realm.mark_path(old))
    operator['marks_deleted'].rest(agent)
    agent.wait_status(lambda d: d['state'] == 'serving'
                      and int(d['worker']) != old, 40, 'a new ID')
    load.takes(50)
    load.stop()
    check([load])


@plays('Cloned machine')
def test_a_cloned_machine(lab, operator):
    """One of the two says it, and both serve on in the end."""
    realm = lab.realm()
    conf = dict(QUICK, renew_ms=1000)
    memory = lab.dir + '/memory'
    first = lab.agent(realm, conf=conf, testing=True,
                      env={'FIRN_TEST_TWIN': memory}).up()
    wait.until(lambda: os.path.exists(memory), 20, 'the memory is written')
    second = lab.agent(realm, conf=conf, testing=True,
                       env={'FIRN_TEST_TWIN_OF': memory}).start()
    agents = [first, second]
    teller = wait.until(
        lambda: next((a for a in agents if 'another process lives under'
                      in a.log()), None), 30, second.tail)
    operator['Cloned machine'].rest(teller)
    realm.settles(agents, 30)


# ---- the agent -----------------------------------------------------------------

@plays('Rolling back a version', 'Draining a host')
def test_another_version_and_a_drain(lab, operator):
    realm = lab.realm()
    agent = lab.agent(realm).up()
    worker = agent.worker()
    load = lab.load(agent, rate=500, timeout=5000).takes(50)
    section = operator['Rolling back a version']
    section.rest(agent)
    load.takes(50)
    assert agent.worker() == worker
    load.stop()
    check([load], workers=worker)
    operator['Draining a host'].rest(agent)
    assert realm.claims() == []
    mark, now_ms = realm.marks()[worker], time.time() * 1000
    assert 1735689600000 + int(mark['ceiling_tick']) < now_ms + 1000, mark


@plays('state_lost', 'state_failed')
def test_the_state_file(lab, operator):
    lost = lab.agent('default', conf={'worker_source': 'static',
                                      'static_worker': 3}).start()
    operator['state_lost'].rest(lost)
    failed = lab.agent(lab.realm(), conf=SWIFT).up()
    path = failed.state_dir + '/state'
    os.unlink(path)
    os.makedirs(path + '/in-the-way')
    operator['state_failed'].next(failed)
    shutil.rmtree(path)
    operator['state_failed'].rest(failed)
