"""Losses of the first rank while ranks are assigned, played with real agents; any number of them in one command.

    python tests/torch/losses.py --losses 1000 --at-once 4

The interpreter is that of `.venv-torch` or `.venv-torch-newest`. `make lose-first-ranks` calls it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

if __name__ == "__main__":
    # As pytest finds them.
    sys.path[:0] = [str(Path(__file__).parents[each]) for each in (2, 1)]

from agent_processes import CALLS, Loss, Play
from tests.contract.engines import Dynoxide, make_table

LOSSES = [Loss(at=at, signal_number=each) for at in range(CALLS) for each in (signal.SIGKILL, signal.SIGSTOP)]
"""A host can end with its connections, or fall silent."""


def play(client, folder: Path, losses: Sequence[Loss], patience: float = 120, survived=lambda: None) -> int:
    """Lose one first rank after the other, each replaced by a new agent; return how many losses the others survived.

    `survived` is called after each.


    Raises `AssertionError` if another agent has ended, or the two that are left form no world.
    """
    table = f"lost-{os.getpid()}-{uuid.uuid4()}"
    make_table(client, table)
    played = Play(client, table, folder, losses[0])
    try:
        played.check(2, patience)
        survived()
        for loss in losses[1:]:
            played.lose(loss)
            played.start()
            played.check(2, patience)
            survived()
    except AssertionError as error:
        error.add_note(f"loss {played.losses} of this play: {losses[played.losses - 1]}")
        raise
    finally:
        played.close()
        client.delete_table(TableName=table)
    return len(losses)


def play_all(one: Callable[[int, Sequence[Loss]], int], plays: int, at_once: int) -> Iterator[Future[int]]:
    """Play all losses this many times, in another order each time; yield the results as they come."""
    with ThreadPoolExecutor(at_once) as pool:
        orders = (random.Random(number).sample(LOSSES, len(LOSSES)) for number in range(plays))
        yield from as_completed([pool.submit(one, number, losses) for number, losses in enumerate(orders)])


def main(arguments: list[str]) -> int:
    """Play the losses, print the progress, and return 1 if one was not survived."""
    options = _options(arguments)
    engine, survived, failed, began = Dynoxide(), itertools.count(1), 0, time.monotonic()
    client = engine.client()

    def one(number: int, losses: Sequence[Loss]) -> int:
        with tempfile.TemporaryDirectory() as folder:
            return play(client, Path(folder), losses, options.patience, tell)

    def tell() -> None:
        _say(f"{next(survived)} losses survived, {time.monotonic() - began:.0f} s")

    for done in play_all(one, -(-options.losses // len(LOSSES)), options.at_once):
        if (error := done.exception()) is not None:
            failed += 1
            _say(f"failed: {error!r} {getattr(error, '__notes__', '')}")
    _say(f"{failed} plays failed")
    engine.close()
    return int(failed > 0)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--losses", type=int, default=1_000, help="ten in each play")
    parser.add_argument("--at-once", type=int, default=4, help="plays that run side by side")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds within which a world must form")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
