"""A group of agents as processes: started, looked at, killed. It must not know what a case is about."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from benchmarks.rendezvous.systems import Place, System, command, environ

LOOK = 0.02
"""Seconds between two looks at what was said."""


class Agent:
    """One agent and its worker.

    Args:
        number: its address is 127.0.0.`number`.
        system, place: how it is started.
        folder: for what it writes.
        gate: the file that it waits for before it begins.
    """

    def __init__(self, number: int, system: System, place: Place, folder: Path, gate: Path) -> None:
        self.number = number
        self.lines: list[dict[str, Any]] = []
        self._says = folder / f"{number}.jsonl"
        self._says.touch()
        self._read = 0
        with (folder / f"{number}.log").open("wb") as log:
            self.process = subprocess.Popen(
                command(system, place, number),
                env=environ(system, place, self._says, gate),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def look(self) -> None:
        """Read what was said since."""
        with self._says.open("rb") as file:
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        self.lines += [json.loads(line) for line in whole.splitlines()]

    @property
    def code(self) -> int | None:
        """Its exit code, once it has ended."""
        return self.process.poll()

    @property
    def imported(self) -> float | None:
        """When it had imported torch."""
        return next((line["imported"] for line in self.lines if line["what"] == "agent"), None)

    @property
    def worker(self) -> int:
        """Process id of its newest worker."""
        pid: int = [line["pid"] for line in self.lines if line["what"] == "worker"][-1]
        return pid

    def world(self) -> dict[str, Any] | None:
        """What its worker said of its newest world."""
        return next((line for line in reversed(self.lines) if line["what"] == "world"), None)

    def kill(self) -> None:
        """End it with all that it has started, as when its machine is lost."""
        for pid in [self.process.pid, *_descendants(self.process.pid), *self._workers()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def _workers(self) -> list[int]:
        """Those whose agent has died before them."""
        return [line["pid"] for line in self.lines if line["what"] == "worker" and _is_worker(line["pid"])]


class Group:
    """Agents that meet in one place.

    Args:
        system, place: how they are started.
        folder: for what they write.
    """

    def __init__(self, system: System, place: Place, folder: Path) -> None:
        self.system = system
        self.place = place
        self.agents: dict[int, Agent] = {}
        self._folder = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for agent in self.agents.values():
            agent.look()
            agent.kill()

    def look(self) -> list[dict[str, Any]]:
        """Everything that was ever said."""
        for agent in self.agents.values():
            agent.look()
        return [line for agent in self.agents.values() for line in agent.lines]

    def alive(self) -> list[Agent]:
        """Agents that have not ended."""
        return [agent for agent in self.agents.values() if agent.code is None]

    def start(self, *numbers: int, limit: float = 120.0) -> float:
        """Start agents, and have them begin all at once when all have imported torch: when that was.

        Raises TimeoutError.
        """
        gate = self._folder / f"gate-{'-'.join(map(str, numbers))}"
        for number in numbers:
            self.agents[number] = Agent(number, self.system, self.place, self._folder, gate)
        until = time.monotonic() + limit
        while any(self.agents[number].imported is None for number in numbers):
            if time.monotonic() > until:
                raise TimeoutError("an agent does not start")
            time.sleep(LOOK)
            self.look()
        gate.touch()
        return time.monotonic()

    def first(self) -> Agent:
        """The agent whose worker is the first rank."""
        self.look()
        ranks = {agent.number: (agent.world() or {}).get("rank") for agent in self.alive()}
        return self.agents[next(number for number, rank in ranks.items() if rank == 0)]


def _descendants(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, path.read_text().split()):
                found += [child, *_descendants(child)]
    return found


def _is_worker(pid: int) -> bool:
    """Whether the process that has this number now is a worker of ours."""
    try:
        return b"rendezvous/worker.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
