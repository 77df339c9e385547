# SPDX-License-Identifier: Apache-2.0
"""Waiting: for a condition, to a deadline, never for a bare stretch of time."""
import time

# Deadlines are written for a quiet machine; only a failure waits for longer.
PATIENCE = 3


class Late(AssertionError):
    """A deadline passed before its condition held."""


def until(condition, seconds, what, every=0.05):
    """The first true value of condition(); Late, with `what`, if none comes.

    `what` may be a function, called once it is too late, so that the message
    can carry the last state seen.
    """
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            text = what() if callable(what) else what
            raise Late('not within %g s: %s' % (seconds, text))
        time.sleep(every)


def holds(condition, seconds, what, every=0.05):
    """condition() must be true all the time, for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert condition(), what() if callable(what) else what
        time.sleep(every)
