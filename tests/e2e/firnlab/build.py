# SPDX-License-Identifier: Apache-2.0
"""Where the programs under test are, and how the command is run."""
import json
import os
import subprocess

from .wait import PATIENCE

SOURCE = os.environ.get('FIRN_SRCDIR') or os.path.dirname(os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.environ.get('FIRN_BUILD') or SOURCE

# Exit statuses of the command (firn(1)).
OK, FAILED, USAGE, AWAY, AGAIN, NOT_ALLOWED, CONFIG = 0, 1, 64, 69, 75, 77, 78


def program(name):
    """The path of a built program: firn, firnd, firnd-test, idload, idcheck."""
    for path in (name, 'tests/e2e/' + name):
        path = os.path.join(BUILD, path)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return os.path.join(BUILD, name)


def built(*names):
    return all(os.path.exists(program(name)) for name in names)


class Result:
    def __init__(self, argv, done):
        self.argv = argv
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    def __repr__(self):
        return '%s: status %d\n%s%s' % (' '.join(self.argv), self.status,
                                        self.out, self.err)

    @property
    def json(self):
        return json.loads(self.out)


def clean_env(extra=None):
    """The environment without anything that steers firn."""
    env = {k: v for k, v in os.environ.items() if not k.startswith('FIRN_')}
    env['LC_ALL'] = 'C.UTF-8'
    env.update(extra or {})
    return env


def run(name, *args, status=0, seconds=60, env=None, stdin=None):
    """Runs a program to its end; `status` is what it must exit with (None:
    whatever it likes)."""
    argv = [program(name)] + [str(a) for a in args]
    done = subprocess.run(
        argv, input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds * PATIENCE,
        env=clean_env(env), text=True)
    result = Result(argv, done)
    assert status is None or result.status == status, repr(result)
    return result


def firn(*args, **options):
    return run('firn', *args, **options)
