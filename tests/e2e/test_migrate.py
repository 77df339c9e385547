# SPDX-License-Identifier: Apache-2.0
"""Coming from another snowflake: its generators and firn's agents side by side
in one ID space, then firn alone, on all worker IDs; none twice.
contrib/MIGRATING.md is what the operator reads.
"""
import os
import signal
import subprocess
import sys

from firnlab import wait
from firnlab.agent import QUICK
from firnlab.build import firn
from firnlab.load import check

EPOCH_MS = 1288834974657

# Twitter's algorithm, as it is found in many languages: worker ID by
# configuration, the clock of the host, a sequence in the millisecond.
FOREIGN = '''
import struct, sys, time
worker, path = int(sys.argv[1]), sys.argv[2]
last = sequence = 0
with open(path, "wb", buffering=0) as out:
    while True:
        now = int(time.time() * 1000)
        if now < last:
            continue
        if now == last:
            sequence = (sequence + 1) & 4095
            if sequence == 0:
                continue
        else:
            sequence = 0
        last = now
        out.write(struct.pack("=Q", now - %d << 22 | worker << 12 | sequence))
        time.sleep(0.0005)
''' % EPOCH_MS


class Foreign:
    """One process of the generator that is being replaced."""

    def __init__(self, lab, worker):
        self.path = '%s/foreign%d.ids' % (lab.dir, worker)
        self.worker = worker
        self.popen = subprocess.Popen(
            [sys.executable, '-c', FOREIGN, str(worker), self.path])

    def ids(self):
        return (os.path.getsize(self.path) // 8
                if os.path.exists(self.path) else 0)

    def takes(self, more):
        goal = self.ids() + more
        wait.until(lambda: self.ids() >= goal, 20, 'foreign IDs')

    def files(self):
        return [self.path]

    def stop(self):
        self.popen.send_signal(signal.SIGKILL)
        self.popen.wait()
        # cut within a record, if it was
        os.truncate(self.path, self.ids() * 8)


def test_from_another_snowflake(lab):
    realm = lab.realm('--first', '--layout', 'twitter', '--workers',
                      '256-1023', '--reserve-max', '3000')
    at = ('--zk', lab.server.hosts, '--realm', realm.name)
    old = [Foreign(lab, worker) for worker in (0, 7, 255)]
    try:
        agents = [lab.agent(realm, conf=QUICK)
                  for _ in '123']
        for agent in agents:
            agent.start()
        loads = [lab.load(a.serving(), rate=2000) for a in agents]
        for one in old + loads:
            one.takes(200)
        # both at once, and each on its own worker IDs
        for agent in agents:
            assert 256 <= agent.worker() <= 1023
        for one in old:
            one.takes(50)
    finally:
        for one in old:
            one.stop()
    for load in loads:
        load.takes(200)
    # nothing of the old range can be taken away again by mistake
    result = firn('realm', 'renew', '--workers', '300-1023', *at, status=64)
    assert 'must hold those of now' in result.err
    # the old ones are gone for good: their worker IDs are firn's from now on
    out = firn('realm', 'renew', '--workers', '0-1023', '--skew-refuse', 1000,
               *at).out
    assert '0 to 1023 (1024)' in out
    workers = realm.contract()['workers']
    assert (int(workers['first']), int(workers['last'])) == (0, 1023)
    for load in loads:
        load.takes(200, 60)
    last = lab.agent(realm, conf=QUICK).up()
    loads.append(lab.load(last, rate=2000).takes(200))
    summaries = [load.stop() for load in loads]
    assert all(s['ids'] > 0 for s in summaries)
    print(check(loads + old, layout='twitter'))
    check(old, layout='twitter', workers='0,7,255')
