"""Reports a job's speed from the steps in the names of its checkpoints, where the script does not count its progress.

Only the container in which checkpoints are written reports: SageMaker copies those of other containers here only before
the command starts. A checkpoint's name has the step; the time of its publication is that of its directory. The
checkpoints of the Hugging Face Trainer count too, where one world works for the whole attempt.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trainmaster.worker.checkpoints.checkpoints import MANIFEST, CheckpointId
from trainmaster.worker.checkpoints.notices import Notices

POLL_SECONDS = 60.0
MIN_SECONDS = 120.0
"""Shortest time between two checkpoints that is taken for a measurement."""
TRAINER, TRAINER_STATE = re.compile(r"checkpoint-(\d{1,12})"), "trainer_state.json"
"""Name of a directory with a checkpoint of the Hugging Face Trainer, and its file that is written late."""
Report = Callable[[CheckpointId, float], None]
"""Reports steps a second, as measured up to a checkpoint. May raise any error."""


@dataclass(slots=True)
class CheckpointSpeed:
    """The speed between the checkpoints of one writer.

    Attributes:
        root: the directory of checkpoints.
        attempt: the job's attempt.
        one_world: whether the attempt has one world, so that checkpoints without a round tell its speed too.
    """

    root: Path
    attempt: int
    one_world: bool = False
    _known: dict[CheckpointId, float] = field(default_factory=dict)
    _base: tuple[CheckpointId, float] | None = None

    def __post_init__(self) -> None:
        self._known = self._found()

    def measure(self) -> tuple[CheckpointId, float] | None:
        """Return the newest checkpoint and the steps a second since an earlier one of its world; None if none is new.

        The first checkpoint of a world begins a measurement, and each one that is far enough from it ends one.
        """
        fresh = {each: at for each, at in self._found().items() if each not in self._known}
        self._known |= fresh
        if not fresh:
            return None
        newest = max(fresh)
        base, self._base = self._base, (newest, fresh[newest])
        if base is None or (base[0].attempt, base[0].round) != (newest.attempt, newest.round):
            return None
        seconds, steps = fresh[newest] - base[1], newest.step - base[0].step
        if seconds < MIN_SECONDS:
            self._base = base
        return (newest, steps / seconds) if seconds >= MIN_SECONDS and steps > 0 else None

    def _found(self) -> dict[CheckpointId, float]:
        """Return this attempt's complete checkpoints with the times of their publication, seconds since 1970."""
        found = {}
        for each, last in self._named():
            try:
                found[each] = last.stat().st_mtime
            except OSError:
                continue
        return found

    def _named(self) -> Iterator[tuple[CheckpointId, Path]]:
        """Yield each checkpoint of this attempt by its name, with the file that completes it."""
        for path in self.root.glob("a*-r*-s*"):
            each = CheckpointId.parse(path.name)
            if each is not None and each.attempt == self.attempt:
                yield each, path / MANIFEST
        for path in self.root.glob("checkpoint-*") if self.one_world else ():
            if (name := TRAINER.fullmatch(path.name)) is not None:
                yield CheckpointId(self.attempt, 0, int(name[1])), path / TRAINER_STATE


def watch(speed: CheckpointSpeed, notices: Notices, report: Report, stop: threading.Event) -> None:
    """Report the speed after each checkpoint, until `stop` is set or a worker counts its own progress."""
    while not stop.wait(POLL_SECONDS) and not notices.counts_progress:
        found = speed.measure()
        if found is not None:
            report(*found)
