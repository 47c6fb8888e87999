"""What acting needs, and how every act is committed and repeated.

One bad job never blocks the rest. It must not decide anything, nor know what an act is for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.errors import Fenced, ServiceTrouble, Throttled
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ENDED, Job
from trainmaster.domain.policy.settings import Policy
from trainmaster.images.service.launcher import ImageLauncher
from trainmaster.ports.resizing import RendezvousControl, ResizeRequester
from trainmaster.ports.runtime import Clock
from trainmaster.ports.sagemaker import Checkpoints, Launcher
from trainmaster.ports.store import Store
from trainmaster.service import dependencies
from trainmaster.service.faults import isolate_fault

log = logging.getLogger(__name__)

FUNCTION, EVENT = "function", "event"
"""Whom a custom resize is asked of: the Lambda function of this ARN, or whoever hears an event (`Elastic.target`)."""


@dataclass(frozen=True, slots=True)
class ManagerContext:
    """What acting needs: the memory, SageMaker, and the time.

    Attributes:
        policy: the settings that a pass has read; None outside of passes, where they are read when a failure asks.
        pools: the pools that a pass has read.
        checkpoints: where jobs save their work; None where nobody looks.
        groups: the rendezvous of elastic jobs; None where there is none, so that members are stopped unasked.
        askers: those who ask others to resize a job, `FUNCTION` and `EVENT`.
        table: the table that nodes meet in, which they are told.
        images: the runs of image jobs; None where the deployment has none.
        faults: gets the names of those for which a fault of ours kept something from being done.
    """

    store: Store
    launcher: Launcher
    clock: Clock
    policy: Policy | None = None
    pools: Mapping[str, Pool] = field(default_factory=dict)
    checkpoints: Checkpoints | None = None
    rendezvous: RendezvousControl | None = None
    resize_requesters: Mapping[str, ResizeRequester] = field(default_factory=dict)
    table: str = ""
    images: ImageLauncher | None = None
    faults: list[str] | None = None

    @property
    def retries(self) -> lifecycle.Retries:
        """How failures are tried again."""
        return (self.policy or self.store.settings().policy).retries


def commit(context: ManagerContext, before: Job, after: Job) -> Job:
    """Commit a change that needs no fence; the stored job where somebody else was faster.

    Raises `Throttled`, `Unavailable`: then nothing has changed, or it is not known whether it has.
    """
    images = context.images if after.image_work is not None and after.state in ENDED else None
    if images is not None:
        images.ending(after)
    if not context.store.transition([(before, after)]):
        return context.store.find(before.name) or before
    if after.state in ENDED:
        dependencies.release_dependents(context.store, after, context.clock.now(), context.faults)
        if images is not None:
            images.ended(after)
    return after


def for_each_job(
    context: ManagerContext, jobs: tuple[Job, ...], step: Callable[[ManagerContext, Job], Job]
) -> tuple[Job, ...]:
    """One bad job never blocks the rest; throttling ends the round, since asking on would make it worse."""
    result = list(jobs)
    for index, job in enumerate(jobs):
        try:
            with isolate_fault(job.name, context.faults):
                result[index] = step(context, job)
        except Throttled as error:
            log.warning("AWS throttles; the next pass goes on", extra={"job": job.name, "cause": str(error)})
            break
        except Fenced:
            raise
        except ServiceTrouble as error:
            log.warning("could not act; the next pass tries again", extra={"job": job.name, "cause": str(error)})
    return tuple(result)
