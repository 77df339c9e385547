#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make bench: firn and what people would take instead, in the same run.

Starts what it needs (a private ZooKeeper, agents, Redis, PostgreSQL, uuidd)
in a temporary directory, measures in interleaved rounds, prints a table, and
writes bench.json and bench.svg into the build directory.  A peer that is not
installed is a row that says so.
"""
import argparse
import os
import resource
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'e2e')]

from firnlab import process, zoo  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402

MEASUREMENTS = {  # seconds and sizes: for figures, and for a try
    False: dict(rounds=5, saturation=60, fairness=5, idle=30, crowd=9900,
                sessions=1000, fleet=30),
    True: dict(rounds=2, saturation=2, fairness=2, idle=5, crowd=500,
               sessions=100, fleet=6),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--quick', action='store_true', help='a try of the '
                        'harness in a minute: its figures mean nothing')
    parser.add_argument('--rounds', type=int, help='default 5')
    parser.add_argument('--publish', action='store_true', help='also into '
                        'contrib/bench and the table in README.md')
    args = parser.parse_args()
    if args.publish and args.quick:
        parser.error('--quick gives no figures to publish')
    return args


def main():
    args = arguments()
    for name in ('FIRN_SOCKET', 'FIRN_ZK', 'FIRN_REALM'):
        os.environ.pop(name, None)  # they steer what is started here
    reason = zoo.missing()
    if reason:
        sys.exit('make bench: ' + reason)
    sizes = dict(MEASUREMENTS[args.quick])
    if args.rounds:
        sizes['rounds'] = args.rounds
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    machine = report.machine(args.quick)
    with tempfile.TemporaryDirectory(prefix='firn-bench-') as directory:
        os.chmod(directory, 0o755)  # PostgreSQL runs as another user
        run = measure.Run(directory, sizes)
        try:
            run.all()
        finally:
            run.close()
            process.end_all()
    document = dict(machine=machine, sizes=sizes, values=run.values,
                    absent=run.absent, rows=rows.judge(run.values, run.absent))
    report.write(document, args.publish)
    return 0 if run.counted else 1


if __name__ == '__main__':
    sys.exit(main())
