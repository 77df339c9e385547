# SPDX-License-Identifier: Apache-2.0
"""The laboratory of the end-to-end tests: real processes, own directories.

Invariant: whatever is started here listens on loopback or on a Unix socket in
the test's own directory, and is ended, by its own pid, when the test ends,
however it ends.
"""
