"""Runs torchrun: reports when torch is imported, and waits for the gate, so that several agents begin at once."""

from __future__ import annotations

import time

STARTED = time.monotonic()

import json  # noqa: E402  # nothing may come before the first look at the clock
import os  # noqa: E402
import sys  # noqa: E402

from torch.distributed.run import main  # noqa: E402

if __name__ == "__main__":
    line = {"what": "agent", "pid": os.getpid(), "started": STARTED, "imported": time.monotonic()}
    with open(os.environ["BENCH_OUTPUT"], "a") as file:  # noqa: PTH123  # no further imports before torchrun begins
        file.write(json.dumps(line) + "\n")
    while not os.path.exists(os.environ["BENCH_GATE"]):  # noqa: PTH110  # as above
        time.sleep(0.01)
    sys.exit(main())
