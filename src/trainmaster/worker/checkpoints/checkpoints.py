"""Checkpoints that an older world cannot overwrite: each is named after its writer, and complete or absent.

A checkpoint's name contains the job's attempt, the round of the world and the step, in this order. A node that was cut
off and continues therefore cannot overwrite the checkpoints of a newer world, and its own sort before them. Before it
publishes, it also checks whether a newer world has formed, and if so publishes nothing. There are two stores: a
directory that all containers see (`DirectoryStore`), and S3 (`s3.S3Store`).

A later job may continue from the checkpoints of an earlier one. Its attempts are counted on from those that it finds
before its first checkpoint, so its checkpoints sort after them. The store remembers that number for each job, so that
all worlds of a job count alike.

Limits: a newer world can form between the check and the publication, and the check passes if the table does not
respond. The checkpoint then sorts before the newer world's, so nothing is lost; but until that world has published one,
a third world would resume from it. It is still a valid checkpoint of the same job.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trainmaster.domain.errors import TrainmasterError

MANIFEST = "manifest.json"
"""File beside those of a checkpoint, with their names and sizes."""
NAME = re.compile(r"a(\d{4,})-r(\d{6,})-s(\d{12,})")
DRAFT = ".draft-"
JOBS = "jobs"
"""Directory with one of each job, in which the name of a file is the number of attempts before the job's first."""
log = logging.getLogger(__name__)


class Fenced(TrainmasterError):
    """A newer world has formed: this one must not write checkpoints, and its processes are about to be ended."""


@dataclass(frozen=True, slots=True, order=True)
class CheckpointId:
    """Identity of a checkpoint; later ones are greater.

    Attributes:
        attempt: of the job, from 1; counted on from the attempts of an earlier job with checkpoints in the same place.
        round: of the world that wrote it; 0 without a rendezvous.
        step: number of completed steps.
    """

    attempt: int
    round: int
    step: int

    @property
    def name(self) -> str:
        """Name such as `a0001-r000003-s000000001200`; names sort by age."""
        return f"a{self.attempt:04}-r{self.round:06}-s{self.step:012}"

    @classmethod
    def parse(cls, name: str) -> CheckpointId | None:
        """Return the identity in a name, or None for any other name."""
        match = NAME.fullmatch(name)
        return cls(*map(int, match.groups())) if match else None


class CheckpointStore(Protocol):
    """Storage of checkpoints; contains complete ones only."""

    def checkpoint_ids(self) -> list[CheckpointId]:
        """Return all complete checkpoints, in any order."""
        ...

    def remains(self) -> list[CheckpointId]:
        """Return the checkpoints of which some files exist, but not all: their writers or their copies were cut off."""
        ...

    def attempts_before(self, job: str, otherwise: int) -> int:
        """Return the number of attempts before a job's first; store `otherwise` if none is stored for it."""
        ...

    def fetch(self, checkpoint_id: CheckpointId, into: Path) -> Path:
        """Return a directory with its files, to read only: `into`, or the place where they are stored."""
        ...

    def publish(self, draft: Path, checkpoint_id: CheckpointId) -> None:
        """Publish a directory's files as a checkpoint, atomically. If it exists already, the first stays."""
        ...

    def remove(self, checkpoint_id: CheckpointId, trash: Path) -> None:
        """Delete a checkpoint, or move it into `trash`; do nothing if it does not exist."""
        ...


class Checkpoints:
    """The checkpoints of a job, for one of its worlds.

    Args:
        store: where they are stored.
        attempt, round_: the writer.
        latest_round: returns the round of the newest world; None if it is unknown, or without a rendezvous.
        scratch: directory for drafts, on the file system of a `DirectoryStore`.
        job: name of the job, the same in all attempts; empty for a program that is no job.

    Attributes:
        on_saved: called with the step of each checkpoint that is published; None for no call.
    """

    on_saved: Callable[[int], None] | None = None

    def __init__(  # noqa: PLR0913  # `training.checkpoints` passes each of them
        self,
        store: CheckpointStore,
        attempt: int,
        round_: int,
        latest_round: Callable[[], int | None],
        scratch: Path,
        *,
        job: str = "",
    ) -> None:
        self._store = store
        self._attempt = attempt
        self._round = round_
        self._latest_round = latest_round
        self._scratch = scratch
        self._job = job
        self._attempts_before: int | None = None

    def latest(self) -> CheckpointId | None:
        """Return the newest complete checkpoint, to resume from, or None.

        Call it on every rank before any rank writes; if only one rank sees the checkpoints, that rank sends it to the
        others.
        """
        return max(self._store.checkpoint_ids(), default=None)

    @contextmanager
    def reading(self, checkpoint_id: CheckpointId) -> Iterator[Path]:
        """Yield a directory with the files of a checkpoint, which may be removed after the context."""
        with self._draft() as draft:
            yield self._store.fetch(checkpoint_id, draft)

    @contextmanager
    def writing(self, step: int, *, keep: int = 3) -> Iterator[Path]:
        """Yield a directory to write into, and publish it as the checkpoint of this step at the end of the context.

        Nothing is published if the context raises an error. Call it in one process of the world.

        Args:
            step: number of completed steps.
            keep: number of checkpoints to keep, with this one; only older ones are removed.

        Raises:
            Fenced: a newer world has formed; nothing is published.
        """
        with self._draft() as draft:
            files = draft / "files"  # unlike the draft, others may read it if this process lets them
            files.mkdir()
            yield files
            checkpoint_id = CheckpointId(self._numbered_attempt(), self._round, step)
            self.fence()
            self._store.publish(files, checkpoint_id)
        if self.on_saved is not None:
            self.on_saved(step)
        try:
            self._remove_older(checkpoint_id, keep)
        except Exception as error:  # noqa: BLE001  # the checkpoint is saved; the next one tries again
            log.warning("trainmaster: older checkpoints could not be removed: %s: %s", type(error).__name__, error)

    def name(self, step: int) -> str:
        """Return the name of this world's checkpoint of a step, for checkpoints that you publish by other means.

        Names sort by age, over all worlds and attempts of a job. Call it on one rank, which sends it to the others.
        """
        return CheckpointId(self._numbered_attempt(), self._round, step).name

    def fence(self) -> None:
        """Raise `Fenced` if a newer world has formed. Call it right before you publish a checkpoint by other means."""
        latest = self._latest_round()
        if latest is not None and latest > self._round:
            raise Fenced(f"round {self._round} must not write checkpoints: round {latest} has formed")

    def _numbered_attempt(self) -> int:
        """Return the attempt for the names of checkpoints."""
        if self._attempts_before is None:
            ids = (*self._store.checkpoint_ids(), *self._store.remains())
            found = max((each.attempt for each in ids), default=0)
            self._attempts_before = self._store.attempts_before(self._job, found) if self._job else 0
        return self._attempts_before + self._attempt

    def _remove_older(self, newest: CheckpointId, keep: int) -> None:
        """Remove older checkpoints beyond those to keep, and what writers of older worlds have left incomplete."""
        older = sorted(other for other in self._store.checkpoint_ids() if other < newest)
        first_of_world = CheckpointId(newest.attempt, newest.round, 0)
        remains = [other for other in self._store.remains() if other < first_of_world]
        for obsolete in (*older[: max(0, len(older) - keep + 1)], *remains):
            with self._draft() as trash:
                self._store.remove(obsolete, trash)

    @contextmanager
    def _draft(self) -> Iterator[Path]:
        self._scratch.mkdir(parents=True, exist_ok=True)
        self._remove_left_drafts()
        prefix = f"{DRAFT}{self._job}-a{self._attempt:04}-r{self._round:06}-"
        draft = Path(tempfile.mkdtemp(prefix=prefix, dir=self._scratch))
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _remove_left_drafts(self) -> None:
        """Remove the drafts of older worlds of this job, whose processes were ended while they wrote or read."""
        name = re.compile(rf"{re.escape(DRAFT + self._job)}-a(\d+)-r(\d+)-\w+")
        for path in self._scratch.glob(f"{DRAFT}*"):
            match = name.fullmatch(path.name)
            if match and (int(match[1]), int(match[2])) < (self._attempt, self._round):
                shutil.rmtree(path, ignore_errors=True)


def files_of(directory: Path) -> dict[str, int]:
    """Return all files below a directory except its manifest, by relative path, with their sizes in bytes."""
    files = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): path.stat().st_size for path in files if path.name != MANIFEST}


class DirectoryStore:
    """Checkpoints as directories in a directory, published by an atomic rename (rename(2)).

    The manifest shows whether a checkpoint is complete: SageMaker copies a directory to S3 and back file by file, so
    files that were not copied when the container ended are missing.

    Args:
        root: directory that all containers share, on a file system that renames directories atomically.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True)

    def checkpoint_ids(self) -> list[CheckpointId]:
        """Return all complete checkpoints; see `CheckpointStore`."""
        return [checkpoint_id for checkpoint_id in self._all_ids() if self._has(checkpoint_id)]

    def remains(self) -> list[CheckpointId]:
        """Return what lacks files, such as a copy that was not finished; see `CheckpointStore`."""
        return [checkpoint_id for checkpoint_id in self._all_ids() if not self._has(checkpoint_id)]

    def attempts_before(self, job: str, otherwise: int) -> int:
        """Return the number of attempts before a job's first; see `CheckpointStore`."""
        folder = self._root / JOBS / job
        folder.mkdir(parents=True, exist_ok=True)
        if not (known := numbers_in(path.name for path in folder.iterdir())):
            (folder / str(otherwise)).touch()
        return max(known, default=otherwise)

    def fetch(self, checkpoint_id: CheckpointId, into: Path) -> Path:  # noqa: ARG002  # it is a directory already
        """Return the directory of a checkpoint; see `CheckpointStore`."""
        return self._root / checkpoint_id.name

    def publish(self, draft: Path, checkpoint_id: CheckpointId) -> None:
        """Publish a checkpoint; see `CheckpointStore`."""
        (draft / MANIFEST).write_text(json.dumps(files_of(draft)))
        try:
            draft.rename(self._root / checkpoint_id.name)
        except OSError:
            if not self._has(checkpoint_id):
                raise

    def remove(self, checkpoint_id: CheckpointId, trash: Path) -> None:
        """Move a checkpoint into `trash` as a whole, since a partly deleted one must not look complete."""
        with suppress(FileNotFoundError):
            (self._root / checkpoint_id.name).rename(trash / checkpoint_id.name)

    def _all_ids(self) -> list[CheckpointId]:
        return [found for path in self._root.iterdir() if (found := CheckpointId.parse(path.name))]

    def _has(self, checkpoint_id: CheckpointId) -> bool:
        """Return whether the checkpoint is complete."""
        directory = self._root / checkpoint_id.name
        try:
            return bool(json.loads((directory / MANIFEST).read_text()) == files_of(directory))
        except (OSError, ValueError):
            return False


def numbers_in(names: Iterable[str]) -> list[int]:
    """Return the names that are numbers."""
    return [int(name) for name in names if name.isascii() and name.isdigit()]
