"""A group of agents as processes."""

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

POLL_SECONDS = 0.02
"""Seconds between two reads of the output."""


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
        self._output = folder / f"{number}.jsonl"
        self._output.touch()
        self._read = 0
        with (folder / f"{number}.log").open("wb") as log:
            self.process = subprocess.Popen(
                command(system, place, number),
                env=environ(system, place, self._output, gate),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def read_output(self) -> None:
        """Read new output."""
        with self._output.open("rb") as file:
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
        """Time at which it had imported torch."""
        return next((line["imported"] for line in self.lines if line["what"] == "agent"), None)

    @property
    def worker(self) -> int:
        """Process id of its newest worker."""
        pid: int = [line["pid"] for line in self.lines if line["what"] == "worker"][-1]
        return pid

    def world(self) -> dict[str, Any] | None:
        """Return the report of its worker's newest world."""
        return next((line for line in reversed(self.lines) if line["what"] == "world"), None)

    def kill(self) -> None:
        """Kill it with all processes that it has started, as if its machine were lost."""
        for pid in [self.process.pid, *_descendants(self.process.pid), *self._workers()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def _workers(self) -> list[int]:
        """Return the running workers whose agent may have died."""
        return [line["pid"] for line in self.lines if line["what"] == "worker" and _is_worker(line["pid"])]


class Group:
    """Agents that meet in one rendezvous.

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
            agent.read_output()
            agent.kill()

    def read_output(self) -> list[dict[str, Any]]:
        """Return the output of all agents so far."""
        for agent in self.agents.values():
            agent.read_output()
        return [line for agent in self.agents.values() for line in agent.lines]

    def alive(self) -> list[Agent]:
        """Return the agents that have not ended."""
        return [agent for agent in self.agents.values() if agent.code is None]

    def start(self, *numbers: int, limit: float = 120.0) -> float:
        """Start agents, have them begin together once all have imported torch, and return that time.

        Raises TimeoutError.
        """
        gate = self._folder / f"gate-{'-'.join(map(str, numbers))}"
        for number in numbers:
            self.agents[number] = Agent(number, self.system, self.place, self._folder, gate)
        until = time.monotonic() + limit
        while any(self.agents[number].imported is None for number in numbers):
            if time.monotonic() > until:
                raise TimeoutError("an agent has not started")
            time.sleep(POLL_SECONDS)
            self.read_output()
        gate.touch()
        return time.monotonic()

    def first(self) -> Agent:
        """Return the agent whose worker is the first rank."""
        self.read_output()
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
    """Return True if the process with this number is a worker of the benchmark."""
    try:
        return b"rendezvous/worker.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
