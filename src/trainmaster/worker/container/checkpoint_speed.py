"""The speed of a job between its checkpoints, by the counters in their names and files.

An epoch, with its fraction or whole, and a number of samples mean the same work at every size. A step does not, unless
it is known whether the global batch grows with the job.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from trainmaster.worker.progress import GlobalBatch

MIN_SECONDS = 120.0
"""Shortest time between two checkpoints that is taken for a measurement."""
STALL = 0.5
"""Part of the last speed below which one is reported only if the next is as low; a crash lies in one measurement."""
TRAINER_STATE = "trainer_state.json"
"""File of the Hugging Face Trainer's checkpoints, written late; has the epoch with its fraction."""
ENDLESS = 1_000_000_000
"""Number of epochs that none has; the Trainer's is larger for data without a length, whose epochs mean nothing."""
MAX_DEPTH = 6
"""Folders that a path from the root to a checkpoint has at most; Lightning writes four levels below its root."""
MAX_ENTRIES = 5_000
"""Names that one look reads at most."""
FILES = re.compile(r".*\.(ckpt|pt|pth|tar|bin|h5|hdf5|keras|safetensors|msgpack|pkl|npz|nemo)")
"""Endings of checkpoints that are files."""
EPOCH = re.compile(r"(?<![a-z])(?:epoch|ep)[-_=]?(\d{1,15})(?!\d)", re.IGNORECASE)
STEP = re.compile(r"(?<![a-z])(?:steps?|global_?step|iter(?:ation)?|ba)[-_=]?(\d{1,15})(?!\d)", re.IGNORECASE)
SAMPLES = re.compile(r"(?<![a-z])consumed_samples=(\d{1,15})(?!\d)")
"""Numbers in the names that Lightning, Composer, DeepSpeed, Megatron, NeMo and torchtune choose, among others."""
TRAINER = re.compile(r"checkpoint-\d+")
NUMBERED = re.compile(r"(?:checkpoint[-_])?(\d{1,15})")
"""Names of folders with a step alone, as Orbax, Flax and scripts with Accelerate choose."""


class Counter(NamedTuple):
    """Work that a checkpoint tells to be done; None for what it does not tell.

    `exact` is False for an epoch without its fraction.
    """

    epoch: float | None = None
    step: int | None = None
    samples: int | None = None
    exact: bool = False


class Saved(NamedTuple):
    """A checkpoint: the work done, what tells when it is another one, and the monotonic time at which it was complete.

    Attributes:
        done: in the unit of its series.
        step: the step, if it tells one.
        at: seconds.
    """

    done: float
    step: int | None
    at: float


@dataclass(slots=True)
class Series:
    """The checkpoints of one folder, in one unit.

    Attributes:
        base: the checkpoint at which the next measurement begins.
        whole: whether they tell whole epochs, which mean a speed only if each is as many epochs after the one before.
        regular: False once they were not.
    """

    base: Saved
    whole: bool = False
    regular: bool = True
    _newest: Saved = field(init=False)
    _stride: float = 0.0
    _rate: float = 0.0

    def __post_init__(self) -> None:
        self._newest = self.base

    def after(self, saved: Saved) -> float | None:
        """Return the work a second up to a newer checkpoint; None if it is too near, or is none."""
        before, self._newest = self._newest, saved
        if saved.done < before.done:  # returned to an earlier checkpoint
            self.base, self._stride = saved, 0.0
            return None
        if self.whole and not self._is_regular(before, saved):
            return None
        if saved.done == before.done:  # another file of the same checkpoint
            self._newest = before
            return None
        return self._measured(saved)

    def _is_regular(self, before: Saved, saved: Saved) -> bool:
        """Return True once two checkpoints in a row were as many epochs after the one before."""
        stride, last = saved.done - before.done, self._stride
        if stride == 0:
            self.regular &= saved.step == before.step and saved.at - before.at < MIN_SECONDS
            return self.regular
        self._stride = stride
        self.regular &= last in (0.0, stride)
        return self.regular and last != 0.0

    def _measured(self, saved: Saved) -> float | None:
        seconds = saved.at - self.base.at
        if seconds < MIN_SECONDS:
            return None
        last, self._rate = self._rate, (saved.done - self.base.done) / seconds
        self.base = saved
        return self._rate if self._rate >= STALL * last else None


@dataclass(slots=True)
class CheckpointSpeed:
    """The work a second between checkpoints.

    Checkpoints that exist when it begins, and those that the script writes again, are no progress.

    Attributes:
        root: the directory of checkpoints; folders in it may contain checkpoints too.
        batch: what a step is; None if that is not known, so that steps tell nothing.
        clock: seconds; never goes back, unlike the times of files.
        wall: seconds since 1970.
        counts_steps: whether a checkpoint has told a step and nothing else.
    """

    root: Path
    batch: GlobalBatch | None = None
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    counts_steps: bool = field(default=False, init=False)
    _known: dict[Path, float] = field(default_factory=dict)
    _looked: float = 0.0
    _series: dict[tuple[Path, str], Series] = field(default_factory=dict)

    @property
    def tells(self) -> bool:
        """True if any checkpoint tells the work that is done."""
        return any(series.regular for series in self._series.values())

    def begin_again(self) -> None:
        """Begin, at the start or in another world: the checkpoints that exist now are no progress."""
        for _ in self._fresh():
            pass
        self._series.clear()

    def measure(self) -> tuple[float, GlobalBatch] | None:
        """Return the work a second up to the newest checkpoint; None if none is new and far enough from the last."""
        rate = None
        for folder, counter, at in sorted(self._fresh(), key=lambda each: each[2]):
            unit, done = self._unit(counter)
            # A Trainer's folder has its name, with the step, before it has its state, with the epoch.
            if done is not None and not (unit == "step" and (folder, "epoch") in self._series):
                found = self._after((folder, unit), Saved(done, counter.step, at), whole=unit == "whole")
                batch = self.batch if unit == "step" and self.batch else GlobalBatch.FIXED
                rate = rate if found is None else (found, batch)
        return rate

    def _after(self, key: tuple[Path, str], saved: Saved, *, whole: bool) -> float | None:
        series = self._series.get(key)
        if series is None:
            self._series[key] = Series(saved, whole)
            return None
        return series.after(saved)

    def _unit(self, counter: Counter) -> tuple[str, float | None]:
        """Return the unit that means the same work at every size, and the work; None for the work without one."""
        if counter.samples is not None:
            return "samples", counter.samples
        if counter.epoch is not None and counter.exact:
            return "epoch", counter.epoch
        if counter.step is not None and self.batch is not None:
            return "step", counter.step
        self.counts_steps = self.counts_steps or (counter.step is not None and counter.epoch is None)
        return "whole", counter.epoch

    def _fresh(self) -> Iterator[tuple[Path, Counter, float]]:
        """Yield the folders and counters of checkpoints that were completed since the last call, and when."""
        now, wall, looked = self.clock(), self.wall(), self._looked
        self._looked = now
        for path, counter in _named(self.root):
            with suppress(OSError, ValueError, RecursionError):
                found = self._with_state(path) or self._first_seen(path, counter)
                if found is not None:
                    yield path.parent, found[0], now - min(max(wall - found[1], 0.0), now - looked)

    def _with_state(self, path: Path) -> tuple[Counter, float] | None:
        """Return what the state of a Trainer's checkpoint tells, and when it was written; None if that is no news."""
        state = path / TRAINER_STATE
        if not TRAINER.fullmatch(path.name) or not state.exists():
            return None
        written = state.stat().st_mtime
        if self._known.get(state) == written:
            return None
        counter = _of_trainer(json.loads(state.read_text()))
        self._known[state] = written
        return counter, written

    def _first_seen(self, path: Path, counter: Counter) -> tuple[Counter, float] | None:
        """Return what a name tells when it is seen first: files and folders change while they are written."""
        if path in self._known:
            return None
        self._known[path] = path.stat().st_mtime
        return counter, self._known[path]


def counter_of(name: str, *, is_folder: bool) -> Counter | None:
    """Return what the name of a checkpoint tells; None for any other name."""
    if not is_folder and not FILES.fullmatch(name):
        return None
    epoch, step, samples = (pattern.search(name) for pattern in (EPOCH, STEP, SAMPLES))
    if is_folder and not (epoch or step or samples):
        step = NUMBERED.fullmatch(name)
    if not (epoch or step or samples):
        return None
    values = [int(found[1]) if found else None for found in (epoch, step, samples)]
    return Counter(epoch=values[0], step=values[1], samples=values[2])


def _of_trainer(state: object) -> Counter:
    """Return what a Trainer's state tells: no epoch if its data have no length."""
    values = state if isinstance(state, dict) else {}
    epoch, step, epochs = (_number(values.get(name)) for name in ("epoch", "global_step", "num_train_epochs"))
    known = epoch if (epochs or 0) < ENDLESS else None
    return Counter(known, None if step is None else int(step), exact=True)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _named(root: Path) -> Iterator[tuple[Path, Counter]]:
    """Yield files and folders whose names tell a counter, the upper ones first; nothing below those is looked at."""
    folders, left = [(root, 0)], MAX_ENTRIES
    for folder, depth in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return
                if entry.name.startswith(".") or entry.is_symlink():
                    continue
                is_folder = entry.is_dir()
                counter = counter_of(entry.name, is_folder=is_folder)
                if counter is not None:
                    yield folder / entry.name, counter
                elif is_folder and depth + 1 < MAX_DEPTH:
                    folders.append((folder / entry.name, depth + 1))
