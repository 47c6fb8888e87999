"""Image jobs as a kind of jobs: registered in `bootstrap.kinds` and, for the API, in `handlers.api.kinds`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from trainmaster import bootstrap
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.events.types import EventType
from trainmaster.images.bootstrap import ImageParts
from trainmaster.images.domain.work import ImageWork, is_run
from trainmaster.images.handlers.metrics import tell_errors, tell_figures
from trainmaster.images.service.status import STATUS, STATUSES
from trainmaster.images.service.submissions import MEMBER
from trainmaster.images.service.variants import settle_variants
from trainmaster.images.settings import ImageSettings, split_environment
from trainmaster.ports.events import Recipient
from trainmaster.service.wake import wake

if TYPE_CHECKING:
    from trainmaster.domain.jobs.observation import Observation
    from trainmaster.ports.kinds import PoolDiscovery, Runs
    from trainmaster.service.apply_plan import PassReport
    from trainmaster.service.kinds import JobKind

NAME = ImageWork.kind


@dataclass(frozen=True, slots=True)
class ImageKind:
    """Image jobs, with their parts in this Lambda environment; implements `service.kinds.JobKind`."""

    parts: ImageParts

    @property
    def runs(self) -> Runs | None:
        """The runs of image jobs; None in a function that starts none."""
        return self.parts.launcher

    @property
    def reporters(self) -> tuple[str, ...]:
        """Unique IDs of the roles of the intake and of the workers."""
        return self.parts.settings.reporters

    @property
    def recipients(self) -> Mapping[str, Recipient]:
        """The topic of status messages; without one, what an earlier deployment with a topic has left is dropped."""
        wanted = STATUSES if self.parts.settings.status_topic else frozenset[EventType]()
        return {STATUS: Recipient(wanted, self.parts.status_topic)}

    def discover(self) -> PoolDiscovery:
        """Return the discovery of endpoints' pools."""
        return self.parts.known_endpoints.discover()

    def observe(self, message: Mapping[str, Any]) -> Observation | None:
        """Return the state of the run that a worker reports about; for a submission, store its job and return None."""
        if MEMBER in message and self.parts.entry is not None:
            self.parts.entry.enter(message)
            wake(self.parts.store, self.parts.publisher)
            return None
        run = message.get("run")
        if self.parts.launcher is None or not isinstance(run, str) or not is_run(run):
            raise InvalidRequest("the message names no run of an image job", field="run")
        return self.parts.launcher.describe(run)

    def after_pass(self, report: PassReport, started_at: datetime) -> None:
        """Publish the metrics of a pass that had image jobs."""
        if self.parts.launcher is None or report.snapshot is None:
            return
        now = self.parts.clock.now()
        milliseconds = (now - started_at).total_seconds() * 1000
        figures = self.parts.meter.figures(report.snapshot, report.plan, now, milliseconds=milliseconds)
        if figures is not None:
            tell_figures(figures)

    def on_tick(self, report: PassReport) -> None:
        """Describe the endpoints of the pass's image jobs again, and choose variants for jobs that had none yet."""
        parts, snapshot = self.parts, report.snapshot
        if parts.refresher is None or snapshot is None:
            return
        jobs = [job for job in (*snapshot.active, *snapshot.waiting) if isinstance(job.work, ImageWork)]
        if jobs:
            tell_errors(parts.refresher.refresh(jobs))
            settle_variants(parts.store, parts.known_endpoints, parts.clock, snapshot.waiting)


def make_kind(settings: Mapping[str, str], application: bootstrap.Application) -> JobKind:
    """Return image jobs as a kind of an application. Raises `InvalidRequest` for wrong settings."""
    return ImageKind(ImageParts(ImageSettings.of_values(settings), application))


def image_parts(application: bootstrap.Application) -> ImageParts:
    """Return the parts of image jobs in an application whose deployment has them."""
    return parts_of(application.kinds[NAME])


def parts_of(kind: JobKind) -> ImageParts:
    """Return the parts of image jobs. Raises `TypeError` for another kind."""
    if not isinstance(kind, ImageKind):
        raise TypeError(f"{kind} is not image jobs")
    return kind.parts


@lru_cache(maxsize=1)
def parts_of_this_environment() -> ImageParts:
    """Return the parts of a function of image jobs, made from its environment variables once."""
    values, rest = split_environment(os.environ)
    settings = bootstrap.Settings.from_env(rest)
    return image_parts(bootstrap.Application(settings.with_kinds({NAME: values})))
