"""What is compared, and how torchrun is told: our rendezvous, and c10d in the ways that it can be set.

It must not start anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import ROOT

PYTHON = ROOT / ".venv-torch" / "bin" / "python"
HERE = Path(__file__).parent
RESTARTS = 100
"""Torchrun's own default of none ends a job with the first loss under either engine."""


@dataclass(frozen=True, slots=True)
class System:
    """One engine, set in one way.

    Attributes:
        name: what it is called in the sheets.
        ours: whether it meets in DynamoDB.
        settings: for `--rdzv-conf`; what is not here is the engine's default.
        environ: for its agents.
    """

    name: str
    ours: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)


_OWN_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
_OUR_DEFAULTS = {"keep_alive_interval": "1", "keep_alive_max_attempt": "5", "last_call_timeout": "5"}
OURS = System("trainmaster", ours=True)
C10D = System("c10d")
C10D_OWN = System("c10d, own store", environ=_OWN_STORE)
C10D_EQUAL = System("c10d, own store, our settings", settings=_OUR_DEFAULTS, environ=_OWN_STORE)
SYSTEMS = (OURS, C10D, C10D_OWN, C10D_EQUAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where agents of one group meet.

    Attributes:
        run: what the rendezvous is called.
        least, most: nodes of a world.
        table: of DynamoDB.
        dynamodb: port of it, or of a wire to it.
        host: number of the agent that hosts c10d's store.
        store: the store's port.
        wire: port at which the others reach it.
    """

    run: str
    least: int
    most: int
    table: str
    dynamodb: int
    host: int
    store: int
    wire: int


def address(number: int) -> str:
    """An agent's."""
    return f"127.0.0.{number}"


def training_job(place: Place, number: int) -> str:
    """What the queue would call this member."""
    return f"{place.run}-m{number}"


def command(system: System, place: Place, number: int) -> list[str]:
    """How an agent is started."""
    settings = dict(system.settings) | dict(_where(system, place, number))
    given = ",".join(f"{name}={value}" for name, value in settings.items())
    endpoint = place.table if system.ours else f"127.0.0.1:{place.store if number == place.host else place.wire}"
    return [
        *(str(PYTHON), str(HERE / "agent.py")),
        f"--nnodes={place.least}:{place.most}",
        "--nproc-per-node=1",
        f"--rdzv-backend={'dynamodb' if system.ours else 'c10d'}",
        f"--rdzv-endpoint={endpoint}",
        f"--rdzv-id={place.run}",
        f"--rdzv-conf={given}",
        f"--local-addr={address(number)}",
        f"--max-restarts={RESTARTS}",
        str(HERE / "worker.py"),
    ]


def environ(system: System, place: Place, says: Path, gate: Path) -> dict[str, str]:
    """What an agent and its workers find in their environment.

    Args:
        system: the engine that it meets under.
        place: where.
        says: the file that it writes to.
        gate: the file that it waits for before it begins.
    """
    return {
        **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{place.dynamodb}",
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_DEFAULT_REGION": "us-east-1",
        "OMP_NUM_THREADS": "1",
        "BENCH_SAYS": str(says),
        "BENCH_GATE": str(gate),
        **system.environ,
    }


def _where(system: System, place: Place, number: int) -> Iterator[tuple[str, str]]:
    if system.ours:
        yield "job", training_job(place, number)
        yield "host", "algo-1"
    else:
        yield "is_host", str(int(number == place.host))
