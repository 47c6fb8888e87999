"""`python -m tests.simulation`: plays seeded days, shrinks failing ones, and prints them as tests."""

from __future__ import annotations

import argparse
import atexit
import json
import logging
import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from simulation.play import Result, play
from simulation.report import added, as_test, show
from simulation.shrink import shrink
from simulation.story import Story, draw
from trainmaster.domain.errors import TrainmasterError

Player = Callable[[Story, str], Result]
"""Plays a story on `memory` or `dynamodb`."""
Drawer = Callable[[int], Story]
"""Returns the story of a seed."""


@dataclass(frozen=True)
class Day:
    """Outcome of one seed, with its test if it failed."""

    seed: int
    result: Result
    test: str = ""


def main(arguments: Sequence[str] | None = None, player: Player | None = None, drawer: Drawer = draw) -> int:
    """Play the days; return 1 if anything was found, 130 after Ctrl-C.

    Args:
        arguments: of the command line.
        player: plays a story on a store; `play_on` by default.
        drawer: draws the stories.
    """
    options = _parser().parse_args(arguments)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background job
        signal.signal(signal.SIGINT, signal.default_int_handler)
    console, days, began = Console(), list[Day](), time.monotonic()
    interrupted = False
    try:
        console.print(f"playing {options.days} days from seed {options.seed}", highlight=False)
        for day in _played(console, options, player or play_on, drawer):
            days.append(day)
            if day.result.findings:
                console.print(f"seed {day.seed}: {day.result.findings[0]}", highlight=False, soft_wrap=True)
                if day.test:
                    console.print(day.test, highlight=False, markup=False, soft_wrap=True)
                if not options.keep_going:
                    break
    except KeyboardInterrupt:
        interrupted = True
        console.print("interrupted; this was played until then:")
    total = added(day.result for day in days)
    show(console, len(days), time.monotonic() - began, total)
    if options.json:
        _write(options.json, days, total)
    failed = [day.seed for day in days if day.result.findings]
    if failed:
        console.print(f"failing seeds: {', '.join(map(str, failed))}", soft_wrap=True)
    return 130 if interrupted else int(bool(failed))


def play_seed(
    seed: int, *, store: str = "memory", shrinks: bool = True, player: Player | None = None, drawer: Drawer = draw
) -> Day:
    """Play one seed, and shrink it if it fails."""
    story, player = drawer(seed), player or play_on
    result = player(story, store)
    if not result.findings or not shrinks:
        return Day(seed, result)
    kind = result.findings[0].kind
    short = shrink(story, lambda each: kind in kinds_of(each, store, player))
    return Day(seed, result, as_test(short, player(short, store).findings[:5], player))


def kinds_of(story: Story, store: str, player: Player) -> set[str]:
    """Return the rules that a story breaks; none if it cannot even begin, since it lacks a pool that it names."""
    try:
        return {found.kind for found in player(story, store).findings}
    except TrainmasterError:
        return set()


def play_on(story: Story, store: str) -> Result:
    """Play a story on a new store."""
    if store == "memory":
        return play(story)
    return play(story, _engine().empty_client())


_ENGINES: list[DynamoDB] = []


def _engine() -> DynamoDB:
    """Return the DynamoDB engine of this process, started when first needed."""
    if not _ENGINES:
        _ENGINES.append(DynamoDB())
    return _ENGINES[0]


class DynamoDB:
    """Dynoxide, with a new table for each day."""

    def __init__(self) -> None:
        from contract.engines import Dynoxide

        engine = Dynoxide()
        atexit.register(engine.close)
        self._client = engine.client(parameter_validation=False)
        self._made = False

    def empty_client(self):
        """Return a client of an engine with an empty table."""
        from world import TABLE, make_table

        if self._made:
            self._client.delete_table(TableName=TABLE)
        make_table(self._client)
        self._made = True
        return self._client


def _played(console: Console, options: argparse.Namespace, player: Player, drawer: Drawer) -> Iterator[Day]:
    seeds = range(options.seed, options.seed + options.days)
    work = _Work(options.store, not options.no_shrink, player, drawer)
    columns = (TextColumn("days"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("days", total=len(seeds))
        for day in _in_processes(work, seeds, options.jobs):
            progress.advance(task)
            yield day


def _in_processes(work: _Work, seeds: range, jobs: int) -> Iterator[Day]:
    if jobs == 1:
        yield from map(work, seeds)
        return
    # Spawn: a fork of a process with threads, such as the bar's, may hang (Python library, multiprocessing).
    with multiprocessing.get_context("spawn").Pool(jobs, _prepare) as pool:
        yield from pool.imap_unordered(work, seeds)


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)


@dataclass(frozen=True)
class _Work:
    store: str
    shrinks: bool
    player: Player
    drawer: Drawer

    def __call__(self, seed: int) -> Day:
        return play_seed(seed, store=self.store, shrinks=self.shrinks, player=self.player, drawer=self.drawer)


def _write(path: Path, days: Sequence[Day], total: Result) -> None:
    figures = {
        "days": len(days),
        "jobs": total.jobs,
        "attempts": total.attempts,
        "passes": total.passes,
        "acts": dict(total.acts),
        "faults": dict(total.faults),
        "calls": dict(total.calls),
        "states": dict(total.states),
        "findings": dict(Counter(finding.kind for finding in total.findings)),
        "failing": [
            {"seed": day.seed, "findings": [str(each) for each in day.result.findings], "test": day.test}
            for day in days
            if day.result.findings
        ],
    }
    path.write_text(json.dumps(figures, indent=2) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--days", type=int, default=100, help="how many days to play")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first day; the next ones follow")
    parser.add_argument("--store", choices=("memory", "dynamodb"), default="memory")
    parser.add_argument("--jobs", type=int, default=1, help="processes that play side by side")
    parser.add_argument("--json", type=Path, help="a file for the figures and the failing stories")
    parser.add_argument("--keep-going", action="store_true", help="play all days even if some fail")
    parser.add_argument("--no-shrink", action="store_true", help="leave failing stories as long as they are")
    return parser
