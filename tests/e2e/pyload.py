# SPDX-License-Identifier: Apache-2.0
"""An application in Python under load: pyload.py SOCKET PREFIX PROCESSES.

It takes IDs with the client of firnlab/pyfirn.py from two threads on one
handle, in itself and in children that inherit the handle with IDs in its
memory.  PREFIX.P.T.ids holds what thread T of process P got, in its order, as
idcheck reads it.  Ends at SIGTERM; exit status 0 if no call failed.
"""
import os
import signal
import struct
import sys
import threading

sys.dont_write_bytecode = True

from firnlab.pyfirn import Client  # noqa: E402

stopping = threading.Event()
failed = []


def take(client, name, count=None):
    with open(name, 'ab', buffering=0) as out:
        while not stopping.is_set() and count != 0:
            try:
                ids = [client.next() for _ in range(20)]
            except Exception as e:  # any: it is the parent's to judge
                print(name, repr(e), file=sys.stderr)
                failed.append(e)
                return
            out.write(struct.pack('=20Q', *ids))
            count = None if count is None else count - 1
            stopping.wait(0.002)


def run(client, prefix, process):
    threads = [threading.Thread(target=take, args=(
        client, '%s.%d.%d.ids' % (prefix, process, t))) for t in (1, 2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def main(path, prefix, processes):
    client = Client(path, timeout=60, batch=300)
    take(client, prefix + '.0.0.ids', 1)  # so that there is a cache
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    children = []
    for number in range(1, int(processes) + 1):
        pid = os.fork()
        if pid == 0:
            run(client, prefix, number)
            os._exit(1 if failed else 0)
        children.append(pid)
    run(client, prefix, 0)
    for pid in children:
        os.kill(pid, signal.SIGTERM)
    good = [os.waitpid(pid, 0)[1] == 0 for pid in children]
    return 0 if all(good) and not failed else 1


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
