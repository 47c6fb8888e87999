"""The jobs of a trace, and which of them a replay runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

DEFAULT_SHARE = "default"
MAX_GPUS = 1_000_000
"""Maximum of a job, and of a pool."""
YEAR = 366 * 86_400.0
"""Seconds of a year."""
MAX_YEARS = 100
"""Of each time of a trace."""
_MAX_REPLAYED_YEARS = 1_000
"""Of the virtual clock, which ends with the year 9999."""
_MAX_NAMES = 10
"""Of shares or columns in a message."""


class BadTrace(ValueError):
    """An invalid trace; the message names the line."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job of a trace.

    Attributes:
        submit: seconds from the start of the trace.
        duration: run time in seconds without interference.
        gpus: accelerators that it holds during all of that time, each a unit of the pool.
        share: its share; the `vc` of the trace.
        max_runtime: the limit that its user would have set, in seconds; None if the trace has none.
    """

    job_id: str
    submit: float
    duration: float
    gpus: int
    share: str = DEFAULT_SHARE
    max_runtime: float | None = None


def select_jobs(
    jobs: Iterable[TraceJob], *, cap: int | None = None, share: str | None = None, limit: int | None = None
) -> list[TraceJob]:
    """Select the jobs to replay: of one share or all, the first `limit`, with sizes capped at the pool.

    Raises `BadTrace` if none is left, or if they take longer on the pool than a virtual clock runs.
    """
    jobs = list(jobs)
    found = [job for job in jobs if share in (None, job.share)][:limit]
    if not found and jobs and share is not None:
        raise BadTrace(f"no job has the vc {share!r}; there are: {some_of(sorted({job.share for job in jobs}))}")
    if not found:
        raise BadTrace("the trace has no jobs")
    if cap is None:
        return found
    capped = [replace(job, gpus=min(job.gpus, cap)) for job in found]
    _check_length(capped, cap)
    return capped


def some_of(names: Sequence[str]) -> str:
    """Return the first names for a message, and the number of the others."""
    others = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {others:,} others" if others > 0 else "")


def _check_length(jobs: Sequence[TraceJob], cap: int) -> None:
    """Check the time that the jobs take at least."""
    work = sum(job.gpus * job.duration for job in jobs) / cap
    years = (max(job.submit for job in jobs) + work) / YEAR
    if years > _MAX_REPLAYED_YEARS:
        raise BadTrace(
            f"the jobs take {years:,.0f} years on {cap:,} GPUs, more than {_MAX_REPLAYED_YEARS:,}: "
            "specify a larger --cap or fewer jobs (--limit), or check the unit of duration_s, which is seconds"
        )
