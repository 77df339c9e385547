# SPDX-License-Identifier: Apache-2.0
"""alert_command: who is told of what, in which words, and how often."""
import json
import os

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import firn

CONF = dict(QUICK, renew_ms=300, op_deadline_ms=250, audit_ms=1000,
            skew_warn_ms=4000)  # more than a slow machine errs
KEYS = ['kind', 'severity', 'state', 'realm', 'host', 'worker', 'since',
        'figures', 'text', 'runbook']


class Pager:
    """A command that appends what it is told to a file."""

    def __init__(self, lab, name):
        self.file = '%s/%s.told' % (lab.dir, name)
        self.program = '%s/%s.sh' % (lab.dir, name)
        with open(self.program, 'w') as f:
            f.write('#!/bin/sh\nexec cat >>"$1"\n')
        os.chmod(self.program, 0o700)
        self.command = [self.program, self.file]

    def told(self, kind=None):
        if not os.path.exists(self.file):
            return []
        with open(self.file) as f:
            lines = f.read().split('\n')[:-1]
        docs = [json.loads(line) for line in lines]
        return [d for d in docs if kind in (None, d['kind'])]


def states(pagers, kind):
    return [d['state'] for p in pagers for d in p.told(kind)]


def test_raised_once_and_cleared_once(lab):
    """Beyond skew_refuse and back.  The host tells of itself, the auditor of
    the fleet, and nobody else of either."""
    realm = lab.realm()
    pagers = [Pager(lab, 'pager%d' % n) for n in range(3)]
    hosts = [lab.host(realm, conf=dict(CONF, alert_command=p.command)).up()
             for p in pagers[:2]]
    for host in hosts:
        host.wait_status(lambda d: d['peers'] == 1, 20, 'the other one')
    far = lab.host(realm, 11, conf=dict(
        CONF, alert_command=' '.join(pagers[2].command))).start()
    far.refuses('clock_skew', 20)
    wait.until(lambda: pagers[2].told('skew_refuse'), 20, far.tail)
    wait.until(lambda: states(pagers, 'fleet_skew'), 20, hosts[0].tail)
    far.clock.set(0)
    far.serving(30)
    wait.until(lambda: len(pagers[2].told('skew_refuse')) == 2, 20, far.tail)
    wait.until(lambda: len(states(pagers, 'fleet_skew')) == 2, 30,
               hosts[0].tail)

    up, down = pagers[2].told('skew_refuse')
    assert [up['state'], down['state']] == ['raised', 'cleared']
    assert list(up) == KEYS and list(down) == KEYS
    assert up['severity'] == 'critical' and up['realm'] == realm.name
    assert up['host'] == os.uname().nodename
    assert int(up['figures']['value']) > 10000, up
    assert up['figures']['limit'] == '10000'
    assert 'ahead of the average of' in up['text'], up
    assert up['runbook'] == 'contrib/RUNBOOK.md#skew_refuse'
    assert up['worker'] is None or int(up['worker']) >= 0
    # its clock was 11 s ahead when it said since when, and is not any more
    assert -1000 < int(up['since']) - int(down['since']) < 12000
    assert 'alert_command: ' not in far.log()

    # one voice for the fleet; and each host has its own clock
    assert sorted(states(pagers, 'fleet_skew')) == ['cleared', 'raised']
    skew = [d for p in pagers for d in p.told('fleet_skew')][0]
    assert list(skew) == KEYS and skew['worker'] is None
    assert int(skew['figures']['value']) > 10000, skew
    for pager in pagers[:2]:
        assert not pager.told('skew_refuse')


def test_trouble_with_it_is_nobodys(lab):
    """It hangs, or is not there: IDs are served, and there is a line."""
    command = '%s/hang.sh' % lab.dir
    with open(command, 'w') as f:
        f.write('#!/bin/sh\ntrap "" TERM\necho $$ >"$1"\nsleep 1000\n')
    os.chmod(command, 0o700)
    pid_file = '%s/hang.pid' % lab.dir
    # an agent that finds no realm raises no_realm after five seconds
    missing = lab.agent('never', conf=dict(
        CONF, alert_command=lab.dir + '/no-such')).start()
    later = lab.unused_name()
    hanging = lab.agent(later, conf=dict(
        CONF, alert_command=[command, pid_file])).start()
    wait.until(lambda: 'does not start: No such file' in missing.log(), 30,
               missing.tail)
    wait.until(lambda: os.path.exists(pid_file)
               and open(pid_file).read().endswith('\n'), 30, hanging.tail)
    firn('realm', 'create', '--first', '--zk', lab.server.hosts, '--realm',
         later)
    hanging.serving(20)
    pid = int(open(pid_file).read())
    for _ in range(20):
        firn('next', '--socket', hanging.socket)
    wait.until(lambda: 'did not end within 10000 ms, ended' in hanging.log(),
               40, hanging.tail)
    wait.until(lambda: not os.path.exists('/proc/%d' % pid), 10,
               'it was ended and reaped')
    hanging.end()
    assert missing.status()['reason'] == 'no_realm'
