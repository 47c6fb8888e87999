"""Time until a new Lambda environment is ready: import of each handler, and its first call, in new processes."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.common.requests import request
from benchmarks.startup.bundle import FUNCTIONS, built, without_compiled_files

_LINE = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \| (\s*)(\S+)")
_SETTINGS = {
    "TRAINMASTER_QUEUE": "sagemaker-queue",
    "TRAINMASTER_TABLE": "sagemaker-queue",
    "TRAINMASTER_WAKE_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/111122223333/sagemaker-queue-wake.fifo",
    "TRAINMASTER_DEAD_LETTER_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/111122223333/sagemaker-queue-dlq.fifo",
    "TRAINMASTER_POOLS": "ml.p5.48xlarge=2,ml.g5.2xlarge=8",
    "TRAINMASTER_ALLOWED_ROLES": "arn:aws:iam::111122223333:role/*",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
}


def measure(times: int, on_step: Callable[[str], None] = lambda _: None) -> list[dict[str, Any]]:
    """Return medians of several processes for each function, as shipped and without compiled files."""
    found = []
    with tempfile.TemporaryDirectory() as text:
        for function in FUNCTIONS:
            on_step(f"{function}: building the bundle")
            shipped = built(function)
            folders = {False: without_compiled_files(shipped, Path(text) / function), True: shipped}
            on_step(f"{function}: starting it")
            for compiled, runs in _in_turns(folders, function, times).items():
                shown = {"function": function, "compiled": compiled, "times": times}
                found.append({**shown, **_medians(runs), "heaviest_imports_ms": _heaviest(folders[compiled], function)})
    return found


def _in_turns(folders: Mapping[bool, Path], function: str, times: int) -> dict[bool, list[dict[str, Any]]]:
    """Start each in turn, so that other work on the machine slows all alike; the first round warms the disk's cache."""
    runs: dict[bool, list[dict[str, Any]]] = {compiled: [] for compiled in folders}
    for _ in range(times + 1):
        for compiled, folder in folders.items():
            runs[compiled].append(json.loads(_probe(folder, function).stdout))
    return {compiled: found[1:] for compiled, found in runs.items()}


def _medians(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return medians of wall time and CPU time; other work on the machine affects CPU time less."""
    imported = [run["parts"]["import the handler"] for run in runs]
    return {
        "import_ms": _median(part["clock"] for part in imported),
        "import_min_ms": round(min(part["clock"] for part in imported), 1),
        "import_processor_ms": _median(part["processor"] for part in imported),
        "ready_ms": _median(sum(part["clock"] for part in run["parts"].values()) for run in runs),
        "ready_processor_ms": _median(sum(part["processor"] for part in run["parts"].values()) for run in runs),
        "parts_processor_ms": {
            name: _median(run["parts"][name]["processor"] for run in runs) for name in runs[0]["parts"]
        },
        "modules": runs[0]["modules"],
    }


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 1)


def _probe(folder: Path, function: str, *options: str) -> subprocess.CompletedProcess[str]:
    made = json.dumps(request("job1", training_seconds=60))
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment = {
        **kept,
        **_SETTINGS,
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PROBE_REQUEST": made,
    }
    command = [sys.executable, *options, str(ROOT / "benchmarks" / "startup" / "probe.py"), function]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=folder)


def _heaviest(folder: Path, function: str) -> dict[str, float]:
    """Return the top packages by their own import time, from `-X importtime`."""
    report = _probe(folder, function, "-X", "importtime").stderr
    packages: dict[str, int] = {}
    for own, _, _, module in _LINE.findall(report):
        package = module.partition(".")[0]
        packages[package] = packages.get(package, 0) + int(own)
    heaviest = sorted(packages.items(), key=lambda item: -item[1])[:8]
    return {package: round(micros / 1000, 1) for package, micros in heaviest}
