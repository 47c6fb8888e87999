"""The compared engines and their torchrun commands: Trainmaster's rendezvous, and c10d with several settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import ROOT
from trainmaster.worker.warm import start
from trainmaster.worker.warm.start import PRELOAD

PYTHON = ROOT / ".venv-torch" / "bin" / "python"
HERE = Path(__file__).parent
KEY = "bench"
"""Secret of every run."""
RESTARTS = 100
"""Torchrun's default of 0 ends a job with the first loss under either engine."""


@dataclass(frozen=True, slots=True)
class System:
    """One engine with its settings.

    Attributes:
        name: name in the tables.
        ours: True if it meets in DynamoDB.
        settings: for `--rdzv-conf`; others are the engine's defaults.
        environ: environment variables of its agents.
        preload: modules that its workers have imported already.
    """

    name: str
    ours: bool = False
    preload: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)


_OWN_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
_OUR_DEFAULTS = {"keep_alive_interval": "1", "keep_alive_max_attempt": "5", "last_call_timeout": "5"}
TRAINMASTER = System("trainmaster", ours=True)
PRELOADED = System("trainmaster, torch preloaded", ours=True, preload="torch")
C10D = System("c10d")
C10D_OWN = System("c10d, own store", environ=_OWN_STORE)
C10D_EQUAL = System("c10d, own store, our settings", settings=_OUR_DEFAULTS, environ=_OWN_STORE)
SYSTEMS = (TRAINMASTER, PRELOADED, C10D, C10D_OWN, C10D_EQUAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The meeting place of the agents of a group.

    Attributes:
        run: id of the rendezvous.
        min_nodes, max_nodes: nodes of a world.
        table: DynamoDB table.
        dynamodb: port of DynamoDB, or of a proxy to it.
        host: number of the agent that hosts c10d's store.
        store: port of that store.
        proxy: port at which other agents reach it.
    """

    run: str
    min_nodes: int
    max_nodes: int
    table: str
    dynamodb: int
    host: int
    store: int
    proxy: int


def address(number: int) -> str:
    """Return an agent's address."""
    return f"127.0.0.{number}"


def training_job(place: Place, number: int) -> str:
    """Return the name of this member's training job."""
    return f"{place.run}-m{number}"


def command(system: System, place: Place, number: int) -> list[str]:
    """Return the command of an agent."""
    settings = dict(system.settings) | dict(_where(system, place, number))
    given = ",".join(f"{name}={value}" for name, value in settings.items())
    endpoint = place.table if system.ours else f"127.0.0.1:{place.store if number == place.host else place.proxy}"
    return [
        *(str(PYTHON), str(HERE / "agent.py")),
        f"--nnodes={place.min_nodes}:{place.max_nodes}",
        "--nproc-per-node=1",
        f"--rdzv-backend={'dynamodb' if system.ours else 'c10d'}",
        f"--rdzv-endpoint={endpoint}",
        f"--rdzv-id={place.run}",
        f"--rdzv-conf={given}",
        f"--local-addr={address(number)}",
        f"--max-restarts={RESTARTS}",
        *([start.__file__] if system.preload else []),
        str(HERE / "worker.py"),
    ]


def environ(system: System, place: Place, output: Path, gate: Path) -> dict[str, str]:
    """Return the environment of an agent and its workers.

    Args:
        system: the engine.
        place: the meeting place.
        output: the file for their output.
        gate: the file for which the agent waits before it begins.
    """
    return {
        **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{place.dynamodb}",
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_DEFAULT_REGION": "us-east-1",
        "OMP_NUM_THREADS": "1",
        "BENCH_OUTPUT": str(output),
        "BENCH_GATE": str(gate),
        "TRAINMASTER_RENDEZVOUS_KEY": KEY,
        **({PRELOAD: system.preload} if system.preload else {}),
        **system.environ,
    }


def _where(system: System, place: Place, number: int) -> Iterator[tuple[str, str]]:
    if system.ours:
        yield "job", training_job(place, number)
        yield "host", "algo-1"
    else:
        yield "is_host", str(int(number == place.host))
