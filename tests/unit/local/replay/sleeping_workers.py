"""A program whose workers print their process IDs and sleep, for tests that kill it."""

from __future__ import annotations

import os
import time

from trainmaster.local.replay.processes import in_processes


def sleeps(name, *, on_progress):
    os.write(1, b"%d\n" % os.getpid())
    time.sleep(600)


if __name__ == "__main__":
    in_processes(sleeps, ["a", "b"], 2, lambda _: None)
