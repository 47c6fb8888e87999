"""Start-up of the command line: whole commands in new processes, as multiples of an empty interpreter.

The API is the tests' fake on the loopback interface, so that the times are those of the command alone.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import fake_api
from benchmarks import ROOT

EMPTY = "python -c pass"
COMMANDS = ("--help", "submit --help", "ls", "why job1", "show job1", "submit request.json", "pools", "settings")
GOALS_MS = {"--help": 300, "ls": 500}
"""Milliseconds on a quiet machine, where they are those of CPU time."""
_MAIN = "from trainmaster.cli.main import main; main()"
_COUNTED = f"import atexit, sys; atexit.register(lambda: print(len(sys.modules), file=sys.stderr)); {_MAIN}"
_KEPT = ("PATH", "HOME", "LANG")


def measure(times: int, on_step: Callable[[str], None] = lambda _: None) -> list[dict[str, Any]]:
    """Return the medians of the empty interpreter and of each command, with their ratio to the former."""
    with tempfile.TemporaryDirectory() as text, fake_api.served(_Queue()) as url:
        folder, environment = Path(text), _environment(url)
        (folder / "request.json").write_text(json.dumps(fake_api.a_request("job2")))
        calls = {EMPTY: ["-c", "pass"], **{line: ["-c", _MAIN, *line.split()] for line in COMMANDS}}
        on_step("the command line: starting it")
        taken = _in_turns(calls, times, environment, folder)
        modules = {line: _modules(line, environment, folder) for line in COMMANDS}
    empty = _medians(taken[EMPTY])
    return [_figures(line, _medians(each), empty, modules.get(line)) for line, each in taken.items()]


class _Queue(fake_api.FakeApi):
    """A queue with one waiting job, which forgets every other that is submitted."""

    def __init__(self) -> None:
        super().__init__()
        self.add("job1", reason=fake_api.waits_for_capacity())

    def post_add_job(self, request: dict[str, Any]) -> tuple[int, Any]:
        """Answer, and forget the job."""
        answer = super().post_add_job(request)
        del self.jobs[request["TrainingJobName"]]
        return answer


def _figures(line: str, own: tuple[float, float], empty: tuple[float, float], modules: int | None) -> dict[str, Any]:
    (clock, processor), (empty_clock, empty_processor) = own, empty
    return {
        "command": line,
        "ms": round(clock, 1),
        "processor_ms": round(processor, 1),
        "ratio": round(clock / empty_clock, 1),
        "processor_ratio": round(processor / empty_processor, 1),
        "modules": modules,
    }


def _environment(url: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    credentials = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_DEFAULT_REGION": "us-east-1"}
    files = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    return {**kept, **credentials, **files, "TRAINMASTER_API_URL": url, "PYTHONPATH": str(ROOT / "src")}


def _in_turns(
    calls: Mapping[str, Sequence[str]], times: int, environment: Mapping[str, str], folder: Path
) -> dict[str, list[tuple[float, float]]]:
    """Return milliseconds of wall time and CPU time of each call.

    They run in turns, so that other work on the machine slows all alike; the first round warms the disk's cache.
    """
    taken: dict[str, list[tuple[float, float]]] = {line: [] for line in calls}
    for _ in range(times + 1):
        for line, arguments in calls.items():
            clock, processor = time.perf_counter(), _processor_seconds()
            _run(arguments, environment, folder)
            spent = (time.perf_counter() - clock, _processor_seconds() - processor)
            taken[line].append((spent[0] * 1000, spent[1] * 1000))
    return {line: each[1:] for line, each in taken.items()}


def _processor_seconds() -> float:
    """Return the CPU time of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _medians(taken: Sequence[tuple[float, float]]) -> tuple[float, float]:
    clocks, processors = zip(*taken, strict=True)
    return statistics.median(clocks), statistics.median(processors)


def _modules(line: str, environment: Mapping[str, str], folder: Path) -> int:
    """Return the number of modules that a command imports."""
    return int(_run(["-c", _COUNTED, *line.split()], environment, folder).stderr.split()[-1])


def _run(arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run an interpreter. Raises CalledProcessError."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
