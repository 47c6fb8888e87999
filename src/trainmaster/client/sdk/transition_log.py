"""Joins a job's secondary-status transitions over its attempts.

SDK 2 prints only transitions beyond those it has printed; an attempt with a new list would print nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainmaster.client.views.states import WAITING
from trainmaster.client.views.wording import attempt_count

if TYPE_CHECKING:
    from trainmaster.client.views.types import JobDetailView

_MAX_JOBS = 64
_Transitions = list[dict[str, Any]]


@dataclass
class TransitionLog:
    """The transitions of each job so far: those of earlier stages, and all. A stage is an attempt or a wait."""

    _entries: OrderedDict[str, tuple[str, _Transitions, _Transitions]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def extend(self, job: JobDetailView, transitions: _Transitions) -> _Transitions:
        """Return the transitions of earlier stages, followed by those of the current stage so far."""
        stage = f"{attempt_count(job)} {job['jobState'] in WAITING}"
        with self._lock:
            last_stage, earlier, latest = self._entries.pop(job["jobName"], (stage, [], []))
            earlier = earlier if stage == last_stage else latest
            self._entries[job["jobName"]] = (stage, earlier, earlier + transitions)
            while len(self._entries) > _MAX_JOBS:
                self._entries.popitem(last=False)
        return earlier + transitions
