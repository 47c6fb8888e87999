"""`python -m trainmaster.local.replay.drafts`: replays the document on standard input, for the console and the CLI.

It prints lines of JSON: `{"progress": 0.4}` while it works, and at last `{"report": …}` or `{"error": …}`. It calls
nothing outside this process.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TextIO

from trainmaster.domain.errors import InvalidRequest
from trainmaster.local.replay.drafts.queue import DraftReplay
from trainmaster.local.replay.drafts.report import report_of
from trainmaster.local.replay.drafts.week import policies_of, week_of
from trainmaster.local.replay.virtual_queue import ReplayFailed, reduced_garbage_collection

_NICE = 10
_STEPS = 100
"""Maximum messages on the progress of a replay."""


def replay(document: Mapping[str, Any], on_progress: Callable[[float], None]) -> dict[str, Any]:
    """Return the report on a document. Raises `InvalidRequest` for a wrong draft; `ReplayFailed`."""
    in_force, draft = policies_of(document)
    week = week_of(document)
    with reduced_garbage_collection():
        before = DraftReplay(week, in_force, lambda part: on_progress(part / 2)).run()
        after = DraftReplay(week, draft, lambda part: on_progress(0.5 + part / 2)).run()
    return report_of(week, before, after, document["leftOut"])


def main(source: TextIO = sys.stdin, out: TextIO = sys.stdout) -> int:
    """Replay, and return the exit code."""

    def say(**message: Any) -> None:
        out.write(f"{json.dumps(message)}\n")
        out.flush()

    try:
        say(report=replay(json.load(source), _rarely(lambda part: say(progress=part))))
    except InvalidRequest as error:
        say(error={"type": "InvalidRequest", "message": error.message, "field": error.field, "hint": error.hint})
    except ReplayFailed as error:
        say(error=_failed(str(error)))
    except Exception as error:  # noqa: BLE001 - the parent has no other way to learn of it
        say(error=_failed(f"{type(error).__name__}: {error}"))
    return 0


def _failed(cause: str) -> dict[str, Any]:
    return {"type": "ReplayFailed", "message": f"The replay failed: {cause}.", "field": None, "hint": None}


def _rarely(say: Callable[[float], None]) -> Callable[[float], None]:
    """Return a function that passes on progress only when it has grown by a step."""
    said = 0

    def tell(part: float) -> None:
        nonlocal said
        if int(part * _STEPS) > said:
            said = int(part * _STEPS)
            say(said / _STEPS)

    return tell


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with suppress(AttributeError, OSError):
        os.nice(_NICE)  # the console, and other programs, stay quick
    try:
        code = main()
    except (KeyboardInterrupt, BrokenPipeError):  # the console has ended
        os._exit(1)
    sys.exit(code)
