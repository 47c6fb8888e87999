"""The last step of a job: merges the features of all regions into the image's result, without duplicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.work import MERGE, RegionRecord, RegionState
from trainmaster.images.pixels.features.features import Feature
from trainmaster.images.pixels.features.results import Found, Results
from trainmaster.images.pixels.features.suppression import suppressed
from trainmaster.images.pixels.work.region_outcome import Outcome, Stopped, TimeUp, done, give_back
from trainmaster.images.pixels.work.task import Assignment, Task

_READERS = 8


class Merging:
    """A worker's run of the merging that it has claimed.

    Args:
        task: the job.
        assignment: the merging.
        results: reads regions' results and writes the image's.
    """

    def __init__(self, task: Task, assignment: Assignment, results: Results) -> None:
        self._task = task
        self._assignment = assignment
        self._queue = assignment.queue
        self._limits = assignment.limits
        self._results = results
        self._beat_at = assignment.queue.clock.now()

    def work(self) -> Outcome:
        """Write the image's result from the completed regions; it names the others."""
        try:
            found = self._merged()
        except Exception as error:  # noqa: BLE001 - whatever it was, the merging has to be given back
            return give_back(self._assignment, error, progress=False)
        return done(self._assignment, features=found)

    def _merged(self) -> int:
        run = self._queue.runs.run(self._assignment.claim.job)
        records = [each for each in (run.records if run else ()) if each.region.number != MERGE]
        finished = [each for each in records if each.state is RegionState.DONE]
        failed = [each.region.number for each in records if each.state is RegionState.FAILED]
        if not self._results.kept:
            return sum(each.features for each in finished)
        features: list[Feature] = []
        clipped: list[bool] = []
        sources: list[tuple[int, int]] = []
        for record, found in zip(finished, self._read(finished), strict=True):
            features += found.features
            clipped += found.clipped
            sources += [(record.region.number, tile) for tile in found.tiles]
        whole = suppressed(features, clipped, self._task.request.distillation, sources)
        self._keep_alive()
        self._results.publish(whole, regions=len(records), failed=failed, keep_alive=self._keep_alive)
        return len(whole)

    def _read(self, records: Sequence[RegionRecord]) -> Iterator[Found]:
        with ThreadPoolExecutor(_READERS, thread_name_prefix="result") as pool:
            try:
                for record, found in zip(records, pool.map(self._load, records), strict=True):
                    if len(found.done) != record.region.tiles:
                        raise InvalidRequest(
                            f"the result of region {record.region.number} no longer exists", field="outputs"
                        )
                    self._keep_alive()
                    yield found
            finally:
                pool.shutdown(cancel_futures=True)

    def _load(self, record: RegionRecord) -> Found:
        return self._results.load(record.region.number, record.region.window, record.region.tiles)

    def _keep_alive(self) -> None:
        """Send a heartbeat if it is due; raise if the worker has to stop."""
        if self._limits.left() < self._limits.spare:
            raise TimeUp
        now = self._queue.clock.now()
        if now - self._beat_at >= timedelta(seconds=self._limits.beat_every):
            self._beat_at = now
            if not self._queue.runs.beat(self._assignment.claim, now, tiles_done=0):
                raise Stopped
