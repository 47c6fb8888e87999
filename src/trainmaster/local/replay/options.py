"""Command-line options of `trainmaster replay`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from trainmaster.local.replay.runs import POLICIES
from trainmaster.local.replay.virtual_queue import RESTART_SECONDS

DEFAULT_POLICY = "backfill"
DEFAULT_DAYS = 90.0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the options; exit with status 2 and a message on standard error if they are invalid."""
    parser = argparse.ArgumentParser(prog="trainmaster replay", allow_abbrev=False)
    parser.add_argument("trace", metavar="TRACE", nargs="?")
    parser.add_argument("--cap", type=_whole, metavar="GPUS")
    parser.add_argument("--policy", action="append", choices=POLICIES, metavar="NAME")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--vc", metavar="NAME")
    parser.add_argument("--limit", type=_whole, metavar="N")
    parser.add_argument("--restart-cost", type=_seconds, default=RESTART_SECONDS, metavar="SECONDS")
    parser.add_argument("--guaranteed-lane", type=_part, default=0.0, metavar="PART")
    parser.add_argument("--eta", type=_whole, default=0, metavar="N")
    parser.add_argument("--out", metavar="DIR")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--from-account", action="store_true")
    parser.add_argument("--days", type=_seconds, default=DEFAULT_DAYS, metavar="N")
    parser.add_argument("--save-trace", metavar="FILE")
    parser.add_argument("--region", metavar="REGION")
    parser.add_argument("--profile", metavar="NAME")
    options = parser.parse_args(arguments)
    _check(parser, options)
    return options


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if (options.trace is None) != options.from_account:
        parser.error("specify either a TRACE or --from-account")
    if options.cap is None and not options.save_trace:
        parser.error("--cap is required: the number of GPUs")
    if options.policy and len(set(options.policy)) > 1 and not options.compare:
        parser.error("several policies require --compare")


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, at least 1")
    return int(text)


def _part(text: str) -> float:
    number = _seconds(text)
    if number > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, at least 0")
    return number
