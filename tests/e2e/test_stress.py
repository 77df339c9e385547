# SPDX-License-Identifier: Apache-2.0
"""libfirn with everything at once: threads that come and end, handles whose
IDs live a millisecond, forks in between; and the checker sees every ID."""
import os

import pytest

from firnlab.agent import QUICK
from firnlab.app import App
from firnlab.load import check


@pytest.mark.short
def test_threads_handles_forks_and_short_lives(lab):
    agent = lab.agent(lab.realm(), conf=dict(QUICK, log_level='info')).up()
    seed = int(os.environ.get('FIRN_SEED') or
               int.from_bytes(os.urandom(3), 'big'))
    print('seed', seed)
    app = App(lab, 'idstress', agent.socket, 'PREFIX', seed)
    told = app.finish(300)
    print(told)
    # 4 generations: threads, the first thread of each fork, 12 children
    assert len(app.files()) > 6 * (4 * 4 + 4 * 3 + 12)
    assert check([app])['ids'] == app.ids() > 50000
    # the parent's: memory served, was waited for, and got too old
    assert told['refills'] > 0 and told['waits'] > 0
    assert 0 < told['hits'] < app.ids()
    assert told['dropped'] > 0
