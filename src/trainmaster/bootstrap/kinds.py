"""Registers the kinds of jobs beside training jobs; the only module of this layer that names one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.jobs.work import Work

if TYPE_CHECKING:
    from trainmaster.bootstrap import Application
    from trainmaster.service.kinds import JobKind


def job_kinds(application: Application) -> dict[str, JobKind]:
    """Return the kinds that the deployment has, by name. Raises `InvalidRequest` for wrong settings."""
    return {name: _made(name, values, application) for name, values in application.settings.job_kinds.items()}


def _made(name: str, settings: Mapping[str, str], application: Application) -> JobKind:
    make = _maker(name)
    if make is None:
        raise InvalidRequest(f"there is no kind of jobs {name!r}", field="TRAINMASTER_JOB_KINDS")
    return make(settings, application)


def _maker(name: str) -> Callable[[Mapping[str, str], Application], JobKind] | None:
    """Return the function that makes a kind; None for an unknown name."""
    if name == "image":
        from trainmaster.images.kind import make_kind

        return make_kind
    return None


# Also a deployment that no longer has a kind lists the jobs of this kind that have ended.
Work.import_kind = staticmethod(_maker)
