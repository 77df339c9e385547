# SPDX-License-Identifier: Apache-2.0
"""What README.md tells a newcomer to type, works."""
import os
import re
import subprocess

import pytest

from firnlab.build import BUILD, SOURCE, clean_env
from firnlab.load import check

LINES_MAX = 15


def readme():
    with open(SOURCE + '/README.md') as f:
        return f.read()


def the_program():
    """The C program of the README: the fenced block with a main."""
    blocks = re.findall(r'^```c\n(.*?)^```', readme(), re.M | re.S)
    whole = [b for b in blocks if 'main(' in b]
    assert whole, 'README.md holds no C program'
    return whole[0]


@pytest.mark.short
def test_the_short_program_compiles_and_runs(lab, tmp_path):
    text = the_program()
    assert sum(bool(x.strip()) for x in text.splitlines()) <= LINES_MAX, text
    source, binary = tmp_path / 'program.c', tmp_path / 'program'
    source.write_text(text)
    libs = os.path.join(BUILD, '.libs')
    shared = os.path.exists(libs + '/libfirn.so')
    flags = os.environ.get('FIRN_SANITIZE', '').split()
    subprocess.run(
        [os.environ.get('CC', 'cc').split()[0], '-Wall', '-Wextra', '-Werror',
         *flags, '-I', SOURCE + '/include', '-o', str(binary), str(source),
         '-L', libs, '-Wl,-rpath,' + libs,
         '-lfirn' if shared else '-l:libfirn.a', '-pthread'], check=True)
    realm = lab.realm()
    agent = lab.agent(realm).up()
    done = subprocess.run([str(binary)], stdout=subprocess.PIPE, timeout=60,
                          text=True, check=True,
                          env=clean_env({'FIRN_SOCKET': agent.socket}))
    ids = [int(x) for x in re.findall(r'\b\d{15,20}\b', done.stdout)]
    assert ids and ids == sorted(set(ids)), done.stdout
    path = tmp_path / 'program.ids'
    path.write_bytes(b''.join(i.to_bytes(8, 'little') for i in ids))

    class Taken:
        files = staticmethod(lambda: [str(path)])
    check([Taken], workers=agent.worker())


def test_the_commands_named_are_there():
    text = readme()
    for name in ('contrib/quickstart', 'contrib/selftest'):
        assert name in text
        assert os.access(os.path.join(SOURCE, name), os.X_OK), name
    for path in re.findall(r'\]\(([^)#:]+)\)', text):
        assert os.path.exists(os.path.join(SOURCE, path)), path
