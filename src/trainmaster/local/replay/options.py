"""Command-line options of `trainmaster replay`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from trainmaster.domain.policy.settings import Order
from trainmaster.domain.requests.fields import shown
from trainmaster.local.replay.runs import POLICIES, REFERENCE
from trainmaster.local.replay.trace.trace import MAX_GPUS
from trainmaster.local.replay.virtual_queue import RESTART_SECONDS

DEFAULT_POLICY = "backfill"
DEFAULT_DAYS = 90.0
MAX_DAYS = 10_000.0
"""Reaches back to before SageMaker existed."""
MAX_RESTART_SECONDS = 1e7
MAX_JOBS = 1_000_000_000
_LANE = Order.GITTINS.value
_T = TypeVar("_T", int, float)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the options; exit with status 2 and a message on standard error if they are invalid."""
    parser = argparse.ArgumentParser(prog="trainmaster replay", allow_abbrev=False)
    parser.add_argument("trace", metavar="TRACE", nargs="?")
    parser.add_argument("--cap", type=_whole(MAX_GPUS), metavar="GPUS")
    parser.add_argument("--policy", action="append", choices=POLICIES, metavar="NAME")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--vc", metavar="NAME")
    parser.add_argument("--limit", type=_whole(MAX_JOBS), metavar="N")
    parser.add_argument("--restart-cost", type=_number(MAX_RESTART_SECONDS), default=RESTART_SECONDS, metavar="SECONDS")
    parser.add_argument("--guaranteed-lane", type=_number(1), default=0.0, metavar="PART")
    parser.add_argument("--eta", type=_whole(MAX_JOBS), default=0, metavar="N")
    parser.add_argument("--out", metavar="DIR")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--from-account", action="store_true")
    parser.add_argument("--days", type=_number(MAX_DAYS), metavar="N")
    parser.add_argument("--save-trace", metavar="FILE")
    parser.add_argument("--region", metavar="REGION")
    parser.add_argument("--profile", metavar="NAME")
    options = parser.parse_args(arguments)
    for problem in _problems(options):
        parser.error(problem)
    return options


def policies(options: argparse.Namespace) -> list[str]:
    """Return the policies to replay, each once; a comparison includes its reference."""
    if not options.compare:
        return [(options.policy or [DEFAULT_POLICY])[0]]
    return list(dict.fromkeys([REFERENCE, *(options.policy or POLICIES)]))


def _problems(options: argparse.Namespace) -> Iterator[str]:
    """Yield the errors in combinations of options."""
    if (options.trace is None) != options.from_account:
        yield "specify either a TRACE or --from-account"
    if options.days is not None and not options.from_account:
        yield "--days requires --from-account"
    if options.save_trace is not None:
        yield from _problems_of_saving(options)
    if options.cap is None and (options.save_trace is None or _replays(options)):
        yield "--cap is required: the number of GPUs"
    if options.policy and len(set(options.policy)) > 1 and not options.compare:
        yield "several policies require --compare"
    if options.eta and not set(Order) & set(policies(options)):
        yield f"--eta applies to the orders of the queue: add one with --policy ({', '.join(Order)})"
    if options.guaranteed_lane and _LANE not in policies(options):
        yield f"--guaranteed-lane applies to {_LANE}: add --policy {_LANE}"


def _problems_of_saving(options: argparse.Namespace) -> Iterator[str]:
    if options.save_trace == "-" and options.cap is not None:
        yield "--save-trace - excludes --cap, since results go to standard output too"
    if options.trace is not None and _same_file(options.trace, options.save_trace):
        yield "--save-trace would replace the TRACE: choose another file"


def _same_file(first: str, second: str) -> bool:
    return Path(first).exists() and Path(second).exists() and Path(first).samefile(second)


def _replays(options: argparse.Namespace) -> bool:
    """Return True if an option is set that only a replay uses."""
    return bool(options.policy or options.compare or options.json or options.out or options.eta)


def _whole(maximum: int) -> Callable[[str], int]:
    return partial(_parsed, int, 1, maximum, "a whole number")


def _number(maximum: float) -> Callable[[str], float]:
    return partial(_parsed, float, 0, maximum, "a number")


def _parsed(kind: Callable[[str | int], _T], minimum: float, maximum: float, what: str, text: str) -> _T:
    """Parse a number within bounds."""
    try:
        number = kind(text)
    except ValueError:
        number = kind(-1)
    if not minimum <= number <= maximum:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not {what} from {minimum} to {maximum:,.0f}")
    return number
