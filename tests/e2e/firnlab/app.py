# SPDX-License-Identifier: Apache-2.0
"""Small applications with one purpose each (idfork, idsignal, idloop, idlate):
started, waited for, and their files of IDs handed to the checker."""
import glob
import json
import os
import subprocess

from . import wait
from .build import clean_env, program
from .process import Process


class App:
    """One run; PREFIX.P.T.ids are its files.  The lab ends it with the test,
    as it does with loads."""

    def __init__(self, lab, name, *args):
        """An argument PREFIX stands for the path that its files begin with."""
        self.prefix = '%s/%s%d' % (lab.dir, name, len(lab.loads))
        argv = [program(name)] + [self.prefix if a == 'PREFIX' else str(a)
                                  for a in args]
        self.process = Process(argv, self.prefix + '.log', env=clean_env(),
                               stdout=subprocess.PIPE)
        lab.loads.append(self)

    def files(self):
        return sorted(glob.glob(self.prefix + '.*.ids'))

    def ids(self):
        return sum(os.path.getsize(name) for name in self.files()) // 8

    def takes(self, more, seconds=60):
        goal = self.ids() + more
        wait.until(lambda: self.ids() >= goal or not self.process.running(),
                   seconds, lambda: '%d IDs of %d' % (self.ids(), goal))
        assert self.process.running(), self.process.text()
        return self

    def finish(self, seconds=120):
        """Its end, which must be a good one; what it printed, if anything."""
        out, _ = self.process.popen.communicate(timeout=seconds)
        status = self.process.wait(1)
        assert status == 0, '%s: status %d\n%s' % (
            self.process.popen.args, status, self.process.text())
        return json.loads(out) if out else None

    def remove(self):
        for name in self.files():
            os.unlink(name)
