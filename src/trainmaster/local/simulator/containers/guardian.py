"""Ends process groups when the process that started them has gone, however it went.

Run as a program of its own with a pipe as its input: a line `+123` puts a group under its guard, `-123` takes it
out; the end of the input means that the starter has gone, and every group still guarded is killed. A script's
children are in its group, so they go too. It must import nothing but the standard library: it starts in no time.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    """Guard until the input ends, then kill."""
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
