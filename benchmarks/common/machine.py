"""Describes the machine, without its name, paths or user."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.common.engine import BINARY


def describe() -> dict[str, Any]:
    """Return processor, memory, versions, and the current load."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release().partition('-')[0]} {platform.machine()}",
        "python": platform.python_version(),
        "boto3": version("boto3"),
        "engine": _output(str(BINARY), "--version"),
        "load": load(),
    }


def commit() -> str:
    """Return the short hash of the commit that is checked out."""
    return _output("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD")


def load() -> float:
    """Return the load average of the last minute; if it exceeds the cores, times are too long."""
    return round(os.getloadavg()[0], 1)


def label(machine: dict[str, Any]) -> str:
    """Return a short name for results: date, processor, cores."""
    processor = re.sub(r"\W+", "-", machine["processor"].lower()).strip("-")
    return f"{machine['at'][:10]}-{processor}-{machine['cores']}-cores"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    given = dict(line.split(":", 1) for line in lines if ":" in line)
    fields = {name.strip(): text.strip() for name, text in given.items()}
    name = re.sub(r"\((R|TM)\)|CPU|Processor|@.*", "", fields.get("model name", platform.machine()))
    return " ".join(name.split())


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
