"""Keeps a job's secondary-status transitions growing from attempt to attempt, as one job's do on SageMaker.

SDK 2 prints the transitions beyond those that it has printed; an attempt that began a new list would print nothing. It
must not ask anybody: it joins what this process has been told.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainmaster.client.views.jobs import WAITING
from trainmaster.client.views.wording import tries

if TYPE_CHECKING:
    from trainmaster.client.views.jobs import JobDetail

_MOST = 64
_Transitions = list[dict[str, Any]]


@dataclass
class Stories:
    """What was told so far of each job: the chapters before, and all. A chapter is an attempt, or a wait."""

    _told: OrderedDict[str, tuple[str, _Transitions, _Transitions]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def continued(self, job: JobDetail, chapter: _Transitions) -> _Transitions:
        """The transitions of earlier chapters, and then this one's so far."""
        title = f"{tries(job)} {job['jobState'] in WAITING}"
        with self._lock:
            last_title, before, all_of_it = self._told.pop(job["jobName"], (title, [], []))
            before = before if title == last_title else all_of_it
            self._told[job["jobName"]] = (title, before, before + chapter)
            while len(self._told) > _MOST:
                self._told.popitem(last=False)
        return before + chapter
