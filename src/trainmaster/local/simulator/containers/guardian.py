"""Kills process groups when the process that started them has ended, for whatever reason.

A separate program that reads standard input: a line `+123` adds a process group, `-123` removes it. At the end of the
input, that is when its parent has ended, it kills all remaining groups, children of scripts included. It imports only
the standard library, to start fast.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    """Read the input to its end, then kill the remaining groups."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    guarded: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line.startswith("+"):
            guarded.add(group)
        else:
            guarded.discard(group)
    for group in guarded:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
