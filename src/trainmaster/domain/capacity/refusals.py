"""Starts that AWS refused for what the job is, such as a role that the manager may not pass.

A refusal meets all jobs of a sweep alike. So the others of its kind hold back until one is accepted: each minute, one
that was refused itself and one that was not are tried, on units that no other job needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2s

from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job

TRIED_EVERY = timedelta(minutes=1)
"""Time between two tries of a refused kind."""
HOLDS_BACK_FOR = timedelta(hours=1)
"""Time after a refusal for which its kind holds back; then jobs that did not fit have reservations again."""
KEPT_FOR = timedelta(days=1)
"""Time after which a refusal is forgotten; until then, no other job gives way to one of its kind."""
MAX_KINDS = 20
"""Refused kinds that are kept, those refused last: they are in a row that every pass reads."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The last refused start of a kind.

    Attributes:
        job: name of the job.
        at: when it was refused.
    """

    job: str
    at: datetime

    @property
    def next_try(self) -> datetime:
        """The earliest time at which another job of the kind is tried."""
        return self.at + TRIED_EVERY


def kind_of(job: Job) -> str:
    """Return a key that is equal for jobs that are probably permitted the same.

    They are of one user, share and image. Those that could use the same warm pool, nearly all but spot jobs, also have
    the same role, key and network.
    """
    same = (job.share, job.submitted_by, job.kind, job.container_image, job.warm_pool_key)
    return blake2s(ascii(same).encode(), digest_size=6).hexdigest()


def after_end(refusals: Mapping[str, Refusal], job: Job, ended: Attempt) -> Mapping[str, Refusal]:
    """Return the refusals after the end of an attempt: it adds one, or shows that its kind is accepted again."""
    if ended.unstartable and ended.ended_at is not None:
        kept = {kind: old for kind, old in refusals.items() if ended.ended_at - old.at <= KEPT_FOR}
        newest = sorted({**kept, kind_of(job): Refusal(job.name, ended.ended_at)}.items(), key=lambda item: item[1].at)
        return dict(newest[-MAX_KINDS:])
    if not refusals or not _is_accepted(ended, refusals.get(kind := kind_of(job))):
        return refusals
    return {other: refusal for other, refusal in refusals.items() if other != kind}


@dataclass(frozen=True, slots=True)
class RefusedKinds:
    """The kinds that are refused now.

    Attributes:
        refusals: their last refusals.
        recent: those of them for which the kind holds back.
    """

    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    recent: Mapping[str, Refusal] = field(default_factory=dict)

    @classmethod
    def of(cls, refusals: Mapping[str, Refusal], active: Iterable[Job], now: datetime) -> RefusedKinds:
        """Return those that are not forgotten, and of which no active job has been accepted since."""
        if not refusals:
            return NO_REFUSALS
        accepted = {
            kind
            for job in active
            if job.attempt is not None and _is_accepted(job.attempt, refusals.get(kind := kind_of(job)))
        }
        known = {
            kind: refusal for kind, refusal in refusals.items() if kind not in accepted and now - refusal.at <= KEPT_FOR
        }
        return cls(known, {kind: last for kind, last in known.items() if now - last.at <= HOLDS_BACK_FOR})

    def refusal(self, job: Job) -> Refusal | None:
        """Return the last refusal of the job's kind; None if it is not refused."""
        return self.refusals.get(kind_of(job)) if self.refusals else None

    def holds_back(self, job: Job) -> Refusal | None:
        """Return the same if it is so recent that the kind holds back."""
        return self.recent.get(kind_of(job)) if self.recent else None


NO_REFUSALS = RefusedKinds()
"""Of a queue all of whose jobs AWS accepts."""


def _is_accepted(attempt: Attempt, refusal: Refusal | None) -> bool:
    return refusal is not None and attempt.launched and attempt.created_at > refusal.at
