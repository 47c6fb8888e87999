"""The training script of the agents: an all-reduce every 50 ms, with a report of each step.

The first rank draws a number that identifies the world. Times are the machine's monotonic clock, which all processes
share. After SIGUSR2 the script ignores SIGTERM. It imports torch only, like a user's script.
"""

from __future__ import annotations

import time

STARTED = time.monotonic()

import json  # noqa: E402  # nothing may come before the first look at the clock
import os  # noqa: E402
import signal  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

IMPORTED = time.monotonic()
PACE = 0.05
"""Seconds between two steps."""


def write_line(**what: object) -> None:
    """Write one line in one call."""
    os.write(OUTPUT, (json.dumps(what) + "\n").encode())


def main() -> None:
    """Train until it is ended."""
    signal.signal(signal.SIGUSR2, lambda *_: signal.signal(signal.SIGTERM, signal.SIG_IGN))
    write_line(what="worker", pid=os.getpid(), started=STARTED, imported=IMPORTED)
    dist.init_process_group("gloo")
    world = torch.tensor([time.monotonic_ns()])
    dist.broadcast(world, 0)
    rank, size = dist.get_rank(), dist.get_world_size()
    charged = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    about = {"pid": os.getpid(), "rank": rank, "size": size, "charged": charged}
    write_line(what="world", world=int(world), started=STARTED, imported=IMPORTED, ready=time.monotonic(), **about)
    total, step = torch.ones(1), 0
    while True:
        dist.all_reduce(total)
        step += 1
        write_line(what="step", world=int(world), step=step, at=time.monotonic())
        total = torch.ones(1)
        time.sleep(PACE)


OUTPUT = os.open(os.environ["BENCH_OUTPUT"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
if __name__ == "__main__":
    main()
