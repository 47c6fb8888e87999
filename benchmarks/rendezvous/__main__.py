"""`python -m benchmarks.rendezvous`: pauses of torchrun under Trainmaster's rendezvous and under c10d.

    python -m benchmarks.rendezvous                              every chain of cases three times; an hour
    python -m benchmarks.rendezvous --only drain,first --repeats 1
    python -m benchmarks.rendezvous --minutes 30 --json some.json    figures to a file, after every chain too
    python -m benchmarks.rendezvous --save                       save the figures, and write the pages

The engines take turns, one group at a time. Ctrl-C ends with the figures measured so far.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console

from benchmarks.common import machine
from benchmarks.common.engine import engine
from benchmarks.common.pages import RENDEZVOUS_MARKS
from benchmarks.common.progress import ProgressBars
from benchmarks.common.results import add_output_options, report, rewrite_pages
from benchmarks.common.world import TABLE, make_table
from benchmarks.rendezvous.cases import CHAINS
from benchmarks.rendezvous.experiment import Experiment, GroupEnded
from benchmarks.rendezvous.group import Group
from benchmarks.rendezvous.proxy import Proxy
from benchmarks.rendezvous.systems import KEY, PYTHON, SYSTEMS, Place, System
from benchmarks.rendezvous.tables import make_tables
from trainmaster.adapters.clock import SystemClock
from trainmaster.adapters.dynamodb.rendezvous.control import DynamoRendezvousControl
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.local.stack.processes import exit_on_signals, free_port

WIDTH = 200
"""Columns of tables in a file or a pipe."""


def schedule(only: Sequence[str], names: Sequence[str], repeats: int) -> Iterator[tuple[int, str, System]]:
    """Yield the chains and engines in order: engines take turns, and each is first equally often."""
    for repeat in range(repeats):
        for name in only:
            systems = [system for system in CHAINS[name].systems if system.name in names]
            first = repeat % len(systems) if systems else 0
            for system in (*systems[first:], *systems[:first]):
                yield repeat, name, system


def measured(client: Any, name: str, system: System, run: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run one chain under one engine."""
    chain, store = CHAINS[name], free_port()
    groups = DynamoRendezvousControl(Table(client, TABLE, time.sleep), SystemClock(), lambda _: KEY)
    with ExitStack() as stack:
        dynamodb = stack.enter_context(Proxy(urlsplit(client.meta.endpoint_url).port, options.latency / 1000))
        to_store = stack.enter_context(Proxy(store)) if chain.cut and not system.ours else None
        place = Place(
            run=run,
            min_nodes=chain.min_nodes,
            max_nodes=chain.max_nodes,
            table=TABLE,
            dynamodb=dynamodb.port,
            host=chain.host,
            store=store,
            proxy=store if to_store is None else to_store.port,
        )
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        group = stack.enter_context(Group(system, place, folder))
        experiment = Experiment(group, to_store or dynamodb, groups, options.limit)
        try:
            chain.play(experiment)
        except GroupEnded:
            pass
        finally:
            if options.logs is not None:
                shutil.copytree(folder, options.logs / run, dirs_exist_ok=True)
        split = experiment.split()
        return [{"chain": name, "system": system.name, "split": split, **one} for one in experiment.found]


def run_all(options: argparse.Namespace, progress: ProgressBars) -> list[dict[str, Any]]:
    """Run every chain, repeat and engine; a combination that never continued is not repeated."""
    found: list[dict[str, Any]] = []
    until = time.monotonic() + options.minutes * 60
    failed: set[tuple[str, str]] = set()
    progress.begin("torchrun")
    with engine() as client:
        make_table(client, TABLE)
        try:
            played_by = list(schedule(options.only, options.system, options.repeats))
            for turn, (repeat, name, system) in enumerate(progress.over(played_by)):
                if time.monotonic() > until or (name, system.name) in failed:
                    continue
                progress.update(f"{repeat + 1}: {name}, {system.name}")
                played = measured(client, name, system, f"bench-{turn}", options)
                failed |= {(name, system.name) for one in played if one["outcome"] == "never"}
                found += [{"repeat": repeat, **one} for one in played]
                if options.json is not None:
                    options.json.write_text(json.dumps({"runs": found}) + "\n")
        except KeyboardInterrupt:
            progress.update("stopped")
    return found


def main(arguments: list[str]) -> int:
    """Run the selected chains; return 0."""
    options = _options(arguments)
    if rewrite_pages(options, make_tables, name="rendezvous", marks=RENDEZVOUS_MARKS):
        return 0
    if not PYTHON.exists():
        raise SystemExit("torch is missing: run `make .venv-torch/.stamp`")
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    terms = {name: getattr(options, name) for name in ("repeats", "latency", "limit")}
    with exit_on_signals(), ProgressBars(console) as progress:
        found: dict[str, Any] = {
            "machine": machine.describe(),
            "options": terms,
            "runs": run_all(options, progress),
        }
    report(found, make_tables(found), options, console, name="rendezvous", marks=RENDEZVOUS_MARKS)
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rendezvous", description="Pauses of torchrun under two rendezvous."
    )
    parser.add_argument("--only", default=",".join(CHAINS), help="these chains of cases, with commas")
    names = [system.name for system in SYSTEMS]
    parser.add_argument("--system", action="append", choices=names, help="only under these")
    parser.add_argument("--repeats", type=int, default=3, help="how often each is played")
    parser.add_argument("--latency", type=float, default=5.0, help="milliseconds that DynamoDB's answers take longer")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds after which a world will never come")
    parser.add_argument("--minutes", type=float, default=240.0, help="after these no further chain is begun")
    parser.add_argument("--logs", type=Path, help="keep what agents and workers say in this folder")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    options.only, options.system = options.only.split(","), options.system or names
    if unknown := set(options.only) - set(CHAINS):
        parser.error(f"there is no {min(unknown)}; there are {', '.join(CHAINS)}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
