"""Reports the speed of a job whose script does not report it, from the container's first process.

The sources are a count in the directory of notices, which a program in any language writes, and checkpoints. Only the
first node of the job's world reports.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from trainmaster.worker.checkpoints.notices import NodeWorld, Notices
from trainmaster.worker.container.checkpoint_speed import CheckpointSpeed
from trainmaster.worker.progress import STEPS_HINT, SpeedReporter

log = logging.getLogger(__name__)

POLL_SECONDS = 10.0
HINT_SECONDS = 1_800.0
"""Time without any source of speeds after which a line of the log says so."""
HINT = (
    "trainmaster: nothing tells this job's speed, so the queue takes it for linear: the script does not call"
    " training.progress, and no checkpoint in %s tells how many epochs are done"
)


class SpeedWatch:
    """Reports what the sources tell.

    Args:
        notices: the directory in which programs write their count.
        reporter: measures the count; reports in this thread.
        checkpoints: measures checkpoints; None where they tell no speed of the job.
        world: returns the nodes that work together, as this one sees them; None if they are not known.
    """

    def __init__(
        self,
        notices: Notices,
        reporter: SpeedReporter,
        checkpoints: CheckpointSpeed | None,
        world: Callable[[], NodeWorld | None],
    ) -> None:
        self._notices = notices
        self._reporter = reporter
        self._checkpoints = checkpoints
        self._world = world
        self._round: int | None = None
        self._looks = 0

    def run(self, stop: threading.Event) -> None:
        """Report until `stop` is set or a worker reports by itself."""
        while not stop.wait(POLL_SECONDS) and not self._notices.counts_progress:
            try:
                self._look()
            except Exception:  # files of a script may be anything: the log says why no speed is reported
                log.exception("trainmaster: the job's speed could not be measured")
                return

    def _look(self) -> None:
        world = self._world()
        if world is not None and world.rank > 0:
            self._round = None
        elif words := self._notices.count().split():
            self._checkpoints = None  # counts in another unit, and a file that is being written may be empty
            size = None if world is None else world.size
            self._reporter.count(words[0], words[1] if len(words) > 1 else size)
        elif self._checkpoints is not None and world is not None:
            self._look_at_checkpoints(self._checkpoints, world)

    def _look_at_checkpoints(self, checkpoints: CheckpointSpeed, world: NodeWorld) -> None:
        if world.round != self._round:  # what the worlds before have written is no progress of this one
            self._round = world.round
            checkpoints.begin_again()
        if (measured := checkpoints.measure()) is not None:
            rate, batch = measured
            self._reporter.report(rate, world.size, batch)
        self._looks += 1
        if self._looks == round(HINT_SECONDS / POLL_SECONDS) and not checkpoints.tells:
            log.warning(*(STEPS_HINT,) if checkpoints.counts_steps else (HINT, checkpoints.root))
