"""A request becomes a waiting job: checked, stored at once or not at all, and the manager woken."""

from __future__ import annotations

from dataclasses import dataclass

from trainmaster.domain.errors import NameTaken
from trainmaster.domain.job import WAITING, Job
from trainmaster.ports import Request
from trainmaster.service.change import Desk
from trainmaster.service.door import Door
from trainmaster.service.explain import Explanation, dry_run, explain_in
from trainmaster.service.wake import wake


@dataclass(frozen=True, slots=True)
class Submission:
    """What came of a submission.

    Attributes:
        job: the job as stored.
        new: False where the same request had been submitted before.
        explanation: what the plan says of it; None where it does not wait any more.
        warnings: advice that does not stand in its way.
    """

    job: Job
    new: bool
    explanation: Explanation | None
    warnings: tuple[str, ...]


def submit(desk: Desk, door: Door, request: Request, caller: str | None) -> Submission:
    """Store the job that the request makes, wake the manager, and say what will come of it.

    The same name and body again give the same answer. Raises the door's refusals, `NameTaken` where the name
    belongs to another body, `TooLarge`, `ServiceTrouble` (then nothing was stored, or the same call again finds it).
    """
    admission = door.admit(request, caller, desk.store.pools().by_name, desk.clock.now())
    stored = desk.store.submit(admission.job, request)
    if stored.digest != admission.job.digest:
        raise _taken(stored.name)
    snapshot = wake(desk.store, desk.publisher)
    explanation = None
    if stored.state in WAITING:
        explanation = explain_in(snapshot, desk.clock.now(), [stored])[stored.name]
    return Submission(stored, stored is admission.job, explanation, admission.warnings)


def plan(desk: Desk, door: Door, request: Request, caller: str | None) -> tuple[Explanation, tuple[str, ...]]:
    """What would happen if this request were submitted now; nothing is stored. Raises what `submit` raises."""
    admission = door.admit(request, caller, desk.store.pools().by_name, desk.clock.now())
    there = desk.store.find(admission.job.name)
    if there is not None and there.digest != admission.job.digest:
        raise _taken(there.name)
    return dry_run(desk.store, desk.clock, admission.job), admission.warnings


def _taken(name: str) -> NameTaken:
    return NameTaken(
        f"The name {name} belongs to a job with another request.",
        field="TrainingJobName",
        hint="Choose another name; SageMaker's names are unique in an account and Region, too.",
    )
