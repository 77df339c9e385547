# SPDX-License-Identifier: Apache-2.0
"""What one request costs the agent, in calls: no time is measured, so a busy
machine changes nothing."""
import mmap
import os
import struct
import subprocess

from firnlab.build import SOURCE
from firnlab.pyfirn import Client

NOWHERE = '127.0.0.1:1'
KINDS = ('receive', 'send', 'wait', 'timer', 'other', 'memory', 'look')
REQUESTS = 10000
SPARE = REQUESTS // 10  # for what goes by time: the state file, the timers


def test_calls_of_a_request(bare_lab):
    """Each is received with one call and answered with one; no memory is
    allocated for it, and nothing else asked of the kernel but to wait.
    Looks without sleeping are part of the wait (firn-spin.h): at most 15 us
    of them, so their number is the machine's."""
    lab = bare_lab
    shim, path = lab.dir + '/callcount.so', lab.dir + '/calls'
    subprocess.run([os.environ.get('CC', 'cc').split()[0], '-D_GNU_SOURCE',
                    '-shared', '-fPIC', '-o', shim,
                    SOURCE + '/tests/e2e/callcount.c', '-ldl'], check=True)
    with open(path, 'w+b') as f:
        f.write(bytes(mmap.PAGESIZE))
        f.flush()
        page = mmap.mmap(f.fileno(), mmap.PAGESIZE)

    def calls():
        return dict(zip(KINDS, struct.unpack_from('<7q', page)))
    agent = lab.agent('default', hosts=NOWHERE, conf={
        'worker_source': 'static', 'static_worker': 1, 'log_level': 'info'},
        env={'LD_PRELOAD': shim, 'FIRN_CALLS': path}).up(20, '--first-use')
    client = Client(agent.socket, timeout=60)
    last = client.next()
    before = calls()
    for _ in range(REQUESTS):
        last, above = client.next(), last
        assert last > above
    after = calls()
    took = {kind: after[kind] - before[kind] for kind in KINDS}
    print(took)
    assert REQUESTS <= took['receive'] <= REQUESTS + SPARE
    assert REQUESTS <= took['send'] <= REQUESTS + SPARE
    assert took['wait'] <= REQUESTS + SPARE + took['other']
    assert took['timer'] <= SPARE
    assert took['other'] <= SPARE
    assert took['memory'] <= SPARE
