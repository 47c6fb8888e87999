"""Pages of jobs with what the plan says of those that wait: one reading of the queue for each page.

It must not read once for each job, nor say of a job that a pass does not look at what the plan would say of it if
nobody waited before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.job import WAITING, Job
from trainmaster.domain.plan import Snapshot
from trainmaster.handlers import models, views
from trainmaster.handlers.views import Standing
from trainmaster.ports import Filter, QueueSettings
from trainmaster.service.change import Desk
from trainmaster.service.explain import explain_in, pool_usage

_MOST_DIGITS = 9


def jobs_page(desk: Desk, which: Filter, limit: int, cursor: str | None) -> models.Jobs:
    """Jobs that match, each waiting one with its standing. Raises `InvalidRequest` for a wrong cursor."""
    page = desk.store.browse(which, limit=limit, cursor=cursor)
    standings = standings_of(desk, page.jobs)
    jobs = [views.job_view(job, standings.get(job.name)) for job in page.jobs]
    return models.Jobs(jobs=jobs, next_cursor=page.cursor)


def queue_page(desk: Desk, limit: int, cursor: str | None) -> models.Queue:
    """Waiting jobs in queue order with their positions, and the pools. Raises `InvalidRequest` for a wrong cursor."""
    place = Place.read(cursor)
    page = desk.store.browse(Filter(states=WAITING), limit=limit, cursor=place.cursor)
    in_force, snapshot = desk.store.settings(), desk.store.survey()
    standings = _standings_in(snapshot, desk, page.jobs)
    jobs = [
        views.job_view(job, replace(standings[job.name], position=position, at_least=None))
        for position, job in enumerate(page.jobs, start=place.rank + 1)
    ]
    after = None if page.cursor is None else Place(place.rank + len(jobs), page.cursor).text()
    return models.Queue(jobs=jobs, next_cursor=after, pools=_pools(desk, in_force, snapshot))


def pools(desk: Desk, in_force: QueueSettings) -> models.Pools:
    """How the pools stand."""
    return models.Pools(pools=_pools(desk, in_force, desk.store.survey()), version=in_force.version)


def _pools(desk: Desk, in_force: QueueSettings, snapshot: Snapshot) -> list[models.Pool]:
    # They may be newer than the snapshot, and the caps are theirs.
    usage = pool_usage(replace(snapshot, pools=in_force.pools), desk.clock.now())
    return [views.pool_view(pool, usage[name]) for name, pool in sorted(in_force.pools.items())]


def standings_of(desk: Desk, jobs: Iterable[Job]) -> Mapping[str, Standing]:
    """Standings of those that wait, by name; nothing is read where none does."""
    waiting = [job for job in jobs if job.state in WAITING]
    return _standings_in(desk.store.survey(), desk, waiting) if waiting else {}


def _standings_in(snapshot: Snapshot, desk: Desk, jobs: Iterable[Job]) -> dict[str, Standing]:
    last_read = {job.lane: job.order for job in snapshot.waiting if job.lane in snapshot.cut_lanes}
    beyond = {job.name: job for job in jobs if job.lane in last_read and job.order > last_read[job.lane]}
    near = [job for job in jobs if job.name not in beyond]
    explained = explain_in(snapshot, desk.clock.now(), near) if near else {}
    standings = {name: views.standing_of(explanation) for name, explanation in explained.items()}
    orders = [job.order for job in snapshot.waiting]
    deep = {name: views.not_considered(at_least=bisect_left(orders, job.order) + 1) for name, job in beyond.items()}
    return standings | deep


@dataclass(frozen=True, slots=True)
class Place:
    """How far a reading of the queue has come: jobs seen so far, and the store's cursor."""

    rank: int = 0
    cursor: str | None = None

    def text(self) -> str:
        """Its form for people: opaque, fit for a URL."""
        return f"{self.rank}.{self.cursor}"

    @classmethod
    def read(cls, text: str | None) -> Place:
        """The place that people handed back; the beginning where they gave none. Raises `InvalidRequest`."""
        if text is None:
            return cls()
        rank, _, cursor = text.partition(".")
        if not (rank.isascii() and rank.isdecimal() and len(rank) <= _MOST_DIGITS and cursor):
            raise InvalidRequest(
                "This cursor is not one that the queue gave out.",
                field="cursor",
                hint="Leave it out to begin with the first page, or hand back a nextCursor unchanged.",
            )
        return cls(int(rank), cursor)
