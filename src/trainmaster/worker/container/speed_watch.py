"""Reports the speed of a job whose script does not report it, from the container's first process.

The sources are a count in the directory of notices, which a program in any language writes, and the checkpoints of the
Hugging Face Trainer. Their `trainer_state.json` has the epoch, with its fraction, which means the same work at every
size; a step does not, since the Trainer's global batch grows with the job.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from trainmaster.worker.checkpoints.notices import Notices
from trainmaster.worker.progress import SpeedReporter

log = logging.getLogger(__name__)

POLL_SECONDS = 10.0
MIN_SECONDS = 120.0
"""Shortest time between two checkpoints that is taken for a measurement."""
STALL = 0.5
"""Part of the last speed below which one is reported only if the next is as low; a crash lies in one measurement."""
HINT_SECONDS = 1_800.0
"""Time without any source of speeds after which a line of the log says so."""
HINT = (
    "trainmaster: nothing tells this job's speed, so the queue takes it for linear: the script does not call"
    " training.progress, and no checkpoint of the Hugging Face Trainer in %s tells an epoch"
)
TRAINER_STATE = "trainer_state.json"
"""File of the Trainer's checkpoints, written late."""
ENDLESS = 1_000_000_000
"""Number of epochs that none has; the Trainer's is larger for data without a length, whose epochs mean nothing."""


class Saved(NamedTuple):
    """A checkpoint: the directory that has it, the epoch, and the monotonic time at which it was complete."""

    folder: Path
    epoch: float
    at: float


@dataclass(slots=True)
class TrainerSpeed:
    """The epochs a second between checkpoints of the Hugging Face Trainer.

    Checkpoints that exist at first, and those that the script writes again, are no progress.

    Attributes:
        root: the directory of checkpoints; its folders may contain checkpoints too.
        clock: seconds; never goes back, unlike the times of files.
        wall: seconds since 1970.
        tells: whether any checkpoint tells an epoch.
    """

    root: Path
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    _known: dict[Path, float] = field(default_factory=dict)
    _looked: float = 0.0
    _base: Saved | None = None
    _rate: float = 0.0
    tells: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        for _ in self._fresh():
            pass

    def measure(self) -> float | None:
        """Return the epochs a second up to the newest checkpoint; None if none is new and far enough from the last."""
        rate = None
        for saved in sorted(self._fresh(), key=lambda each: each.at):
            rate = self._after(saved) or rate
        return rate

    def _after(self, saved: Saved) -> float | None:
        base = self._base
        if base is None or base.folder != saved.folder or saved.epoch <= base.epoch:
            self._base = saved
            return None
        seconds = saved.at - base.at
        if seconds < MIN_SECONDS:
            return None
        last, self._rate, self._base = self._rate, (saved.epoch - base.epoch) / seconds, saved
        return self._rate if self._rate >= STALL * last else None

    def _fresh(self) -> Iterator[Saved]:
        """Yield the checkpoints that were completed since the last call."""
        now, wall, looked = self.clock(), self.wall(), self._looked
        self._looked = now
        for path in (
            *self.root.glob(f"checkpoint-*/{TRAINER_STATE}"),
            *self.root.glob(f"*/checkpoint-*/{TRAINER_STATE}"),
        ):
            with suppress(OSError, ValueError):
                written = path.stat().st_mtime
                if self._known.get(path) == written:
                    continue
                epoch = _epoch(json.loads(path.read_text()))
                self._known[path] = written
                if epoch is not None:
                    self.tells = True
                    yield Saved(path.parent.parent, epoch, now - min(max(wall - written, 0.0), now - looked))


def _epoch(state: object) -> float | None:
    """Return the epoch in a Trainer's state; None if it tells none, or one of data without a length."""
    if not isinstance(state, dict):
        return None
    epoch, epochs = state.get("epoch"), state.get("num_train_epochs", 0)
    if not all(isinstance(number, (int, float)) and math.isfinite(number) for number in (epoch, epochs)):
        return None
    return float(epoch) if epochs < ENDLESS else None  # type: ignore[arg-type]


def watch(notices: Notices, reporter: SpeedReporter, trainer: TrainerSpeed | None, stop: threading.Event) -> None:
    """Report what the sources tell, until `stop` is set or a worker reports by itself.

    Args:
        notices: the directory in which programs write their count.
        reporter: measures the count; reports in this thread.
        trainer: checkpoints of the Trainer; None where they tell no speed of the job.
        stop: ends the watch.
    """
    looks = 0
    while not stop.wait(POLL_SECONDS) and not notices.counts_progress:
        try:
            looks += 1
            if words := notices.count().split():
                trainer = None  # counts in another unit, and a file that is being written may be empty
                reporter.count(*words[:2])
            elif trainer is not None:
                _report_checkpoint(reporter, trainer, looks)
        except Exception:  # files of a script may be anything: the log says why no speed is reported
            log.exception("trainmaster: the job's speed could not be measured")
            return


def _report_checkpoint(reporter: SpeedReporter, trainer: TrainerSpeed, looks: int) -> None:
    rate = trainer.measure()
    if rate is not None:
        reporter.report(rate)
    if looks == round(HINT_SECONDS / POLL_SECONDS) and not trainer.tells:
        log.warning(HINT, trainer.root)
