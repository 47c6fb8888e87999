"""`python -m benchmarks.rendezvous.meeting`: groups of hundreds of handlers on Dynoxide over HTTP, beside torch's c10d.

python -m benchmarks.rendezvous.meeting                             128 and 256 nodes under both
python -m benchmarks.rendezvous.meeting --nodes 64 --system trainmaster --spread 10
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from benchmarks import ROOT
from benchmarks.common.engine import engine
from benchmarks.common.world import TABLE, make_table
from benchmarks.rendezvous.systems import PYTHON
from trainmaster.local.stack.processes import exit_on_signals, free_port

NODES = Path(__file__).parent / "nodes.py"
PROGRAMS = {"trainmaster": Path(sys.executable), "c10d": PYTHON}
"""Interpreters of the nodes."""


class Process:
    """A process with some of the nodes.

    Args:
        system: whose handlers.
        options: for `nodes.py`.
    """

    def __init__(self, system: str, options: Sequence[str]) -> None:
        self.lines: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [PROGRAMS[system], str(NODES), system, *options],
            env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(json.loads(line))

    def tell(self, line: str) -> None:
        """Write a line to the process."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()


class Group:
    """All nodes.

    Args:
        processes: they run in these.
        count: number of nodes.
    """

    def __init__(self, processes: Sequence[Process], count: int) -> None:
        self._processes = processes
        self._live = set(range(count))

    def begin(self, spread: float) -> float:
        """Have the nodes come within this many seconds, and return the time at which the last one comes."""
        at = time.monotonic() + 0.5
        for process in self._processes:
            process.tell(f"begin {at} {spread}")
        return at + spread

    def lose(self, number: int) -> float:
        """Lose a node without a word, and return the time."""
        self._live.discard(number)
        for process in self._processes:
            process.tell(f"lose {number}")
        return time.monotonic()

    def lines(self, what: str) -> list[dict[str, Any]]:
        """Return what the nodes have reported of one kind."""
        return [line for process in self._processes for line in process.lines if line["what"] == what]

    def worlds(self) -> dict[int, dict[str, Any]]:
        """Return the newest world of each live node that has one."""
        return {line["node"]: line for line in self.lines("world") if line["node"] in self._live}

    def seconds_to_one_world(self, since: float, limit: float) -> tuple[float | None, int]:
        """Return the seconds until all live nodes are in one world (None: beyond the limit), and the largest size."""
        while time.monotonic() < since + limit:
            worlds = self.worlds()
            if len(worlds) == len(self._live) and {line["size"] for line in worlds.values()} == {len(self._live)}:
                return round(max(line["at"] for line in worlds.values()) - since, 2), len(worlds)
            time.sleep(0.05)
        return None, max((line["size"] for line in self.worlds().values()), default=0)


def measure(system: str, count: int, options: argparse.Namespace) -> dict[str, Any]:
    """Have a group meet, and lose one node."""
    with ExitStack() as stack:
        client = stack.enter_context(engine())
        make_table(client, TABLE)
        port = urlsplit(client.meta.endpoint_url).port if system == "trainmaster" else free_port()
        shared = [str(port), TABLE, str(count)]
        numbers = [range(part, count, options.processes) for part in range(options.processes)]
        processes = [stack.enter_context(Process(system, [*shared, ",".join(map(str, part))])) for part in numbers]
        group = Group(processes, count)
        while len(group.lines("ready")) < len(processes):
            time.sleep(0.05)
        met, largest = group.seconds_to_one_world(group.begin(options.spread), options.limit)
        found = {"system": system, "nodes": count, "met": met, "largest": largest}
        if met is not None:
            time.sleep(5.0)
            found["lost"], found["left"] = group.seconds_to_one_world(group.lose(count - 1), options.limit)
        return found


def main(arguments: list[str]) -> int:
    """Measure the selected groups, and print a line of JSON for each."""
    options = _options(arguments)
    with exit_on_signals():
        for count in map(int, options.nodes.split(",")):
            for system in options.system or PROGRAMS:
                print(json.dumps(measure(system, count, options)), flush=True)
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rendezvous.meeting", description="Large groups on a real engine."
    )
    parser.add_argument("--nodes", default="128,256", help="sizes of groups, with commas")
    parser.add_argument("--system", action="append", choices=list(PROGRAMS), help="only under this")
    parser.add_argument("--spread", type=float, default=0.0, help="seconds within which the nodes come")
    parser.add_argument("--processes", type=int, default=4, help="processes in which the nodes run")
    parser.add_argument("--limit", type=float, default=150.0, help="seconds after which a world will never come")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
