"""Checkpoints that an older world cannot spoil: each is named after who wrote it, and complete or not there.

A checkpoint's name has the job's attempt, the round of the world and the step, in this order of weight. A writer that
was left behind therefore never overwrites what a newer world has written, and what it still writes sorts below. Before
it publishes it also looks whether a newer world works, and if so writes nothing. Two keepers: a directory that all
containers see (`DirectoryKeeper`), and S3 (`s3_checkpoints`). It must not know what is in a checkpoint.

What this cannot do: between the look and the publishing a newer world may form, and a table that does not answer lets
the look pass. The result is a checkpoint that sorts below the newer world's, so nothing is lost; but until that world
has published one of its own, a third would resume from it. It is a sound checkpoint of the same job all the same.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trainmaster.domain.errors import TrainmasterError

MANIFEST = "manifest.json"
"""Beside a checkpoint's files: their names and sizes."""
NAME = re.compile(r"a(\d{4,})-r(\d{6,})-s(\d{12,})")
DRAFT = ".draft-"


class Fenced(TrainmasterError):
    """A newer world works: this one must write no checkpoints any more. Its processes are about to be ended."""


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """Which checkpoint it is; later ones are greater.

    Attributes:
        attempt: of the job, from 1.
        round: of the world that wrote it; 0 where there is no rendezvous.
        step: steps that it has behind it.
    """

    attempt: int
    round: int
    step: int

    @property
    def name(self) -> str:
        """Such as `a0001-r000003-s000000001200`: sorted by name is sorted by age."""
        return f"a{self.attempt:04}-r{self.round:06}-s{self.step:012}"

    @classmethod
    def named(cls, name: str) -> Mark | None:
        """The mark in a name; None for any other name."""
        found = NAME.fullmatch(name)
        return cls(*map(int, found.groups())) if found else None


class Keeper(Protocol):
    """Where checkpoints are kept: what is there is complete."""

    def marks(self) -> list[Mark]:
        """All complete checkpoints, in any order."""
        ...

    def fetch(self, mark: Mark, into: Path) -> Path:
        """A directory with its files: `into`, or where they are anyway; they are only read."""
        ...

    def publish(self, draft: Path, mark: Mark) -> None:
        """Make a directory's files a checkpoint, all at once. Of one that is there already, the first stays."""
        ...

    def remove(self, mark: Mark) -> None:
        """Delete it; nothing where it is gone."""
        ...


class Checkpoints:
    """The checkpoints of a job, as one of its worlds may write them.

    Args:
        keeper: where they are.
        attempt, round: who writes.
        newest_world: the round of the newest world; None where that cannot be known, or there is no rendezvous.
        scratch: for drafts; a directory on the same file system as a `DirectoryKeeper`'s.
    """

    def __init__(
        self, keeper: Keeper, attempt: int, round_: int, newest_world: Callable[[], int | None], scratch: Path
    ) -> None:
        self._keeper = keeper
        self._attempt = attempt
        self._round = round_
        self._newest_world = newest_world
        self._scratch = scratch

    def latest(self) -> Mark | None:
        """The one to resume from: the newest complete one; None where there is none.

        Every rank asks before anyone writes; where only one can see them, that one tells the others.
        """
        return max(self._keeper.marks(), default=None)

    @contextmanager
    def reading(self, mark: Mark) -> Iterator[Path]:
        """A directory with the files of a checkpoint, for as long as the context."""
        with self._draft() as draft:
            yield self._keeper.fetch(mark, draft)

    @contextmanager
    def writing(self, step: int, *, keep: int = 3) -> Iterator[Path]:
        """A directory to write into; it becomes the checkpoint of this step when the context ends without an error.

        One process of the world writes. Raises `Fenced` at the end where a newer world works; nothing is published.

        Args:
            step: steps done.
            keep: how many checkpoints stay, this one included; only older ones are removed.
        """
        mark = Mark(self._attempt, self._round, step)
        with self._draft() as draft:
            yield draft
            self.fence()
            self._keeper.publish(draft, mark)
        older = sorted(found for found in self._keeper.marks() if found < mark)
        for found in older[: max(0, len(older) - keep + 1)]:
            self._keeper.remove(found)

    def fence(self) -> None:
        """Raises `Fenced` where a newer world works. For what is written by other means, look right before."""
        newest = self._newest_world()
        if newest is not None and newest > self._round:
            raise Fenced(f"round {newest} works, and this is round {self._round}: it must write nothing")

    @contextmanager
    def _draft(self) -> Iterator[Path]:
        self._scratch.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=self._scratch))
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def files_of(directory: Path) -> dict[str, int]:
    """All files below a directory, by their relative paths, with their sizes in bytes; not its manifest."""
    found = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): path.stat().st_size for path in found if path.name != MANIFEST}


class DirectoryKeeper:
    """Checkpoints as directories in a directory: renamed into place, which is all or nothing (rename(2)).

    Whether one is complete its manifest says: SageMaker copies a directory to S3 file by file and back, and what it
    had not copied when the container ended is missing from the copy.

    Args:
        root: on a file system that renames directories whole; all that share the checkpoints see it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True)

    def marks(self) -> list[Mark]:
        """See `Keeper`."""
        return [mark for path in self._root.iterdir() if (mark := Mark.named(path.name)) and _complete(path)]

    def fetch(self, mark: Mark, into: Path) -> Path:  # noqa: ARG002  # it is a directory already
        """See `Keeper`."""
        return self._root / mark.name

    def publish(self, draft: Path, mark: Mark) -> None:
        """See `Keeper`."""
        (draft / MANIFEST).write_text(json.dumps(files_of(draft)))
        try:
            draft.rename(self._root / mark.name)
        except OSError:
            if not _complete(self._root / mark.name):
                raise

    def remove(self, mark: Mark) -> None:
        """See `Keeper`. Renamed first: a checkpoint that is half deleted must not look complete."""
        doomed = self._root / f"{DRAFT}gone-{mark.name}"
        try:
            (self._root / mark.name).rename(doomed)
        except FileNotFoundError:
            return
        shutil.rmtree(doomed, ignore_errors=True)


def _complete(directory: Path) -> bool:
    try:
        return bool(json.loads((directory / MANIFEST).read_text()) == files_of(directory))
    except (OSError, ValueError):
        return False
