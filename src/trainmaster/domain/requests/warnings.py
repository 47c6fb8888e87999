"""Warnings about valid requests that will probably not do what their submitters want.

Each names the effect and the remedy. Warnings never reject a request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainmaster.domain.requests.fields import entries, part, shown, text, whole
from trainmaster.domain.requests.tag_names import OPTION_PREFIX, PRIORITY_TAG

Object = Mapping[str, object]


def warnings(request: Object, *, preemptible: bool | None = None) -> list[str]:
    """Return warnings for the submitter, the most serious first.

    Args:
        request: A CreateTrainingJob request.
        preemptible: Whether the queue may preempt the job; read from its tags if None.
    """
    may_stop = _asks_to_be_preemptible(request) if preemptible is None else preemptible
    return [*(_preemption(request) if may_stop else ()), *_runtime(request), *_misspelt_priority(request)]


def _asks_to_be_preemptible(request: Object) -> bool:
    return not _asks_for(request, "preemptible", "false")


def _asks_for(request: Object, option: str, value: str) -> bool:
    key = OPTION_PREFIX + option
    return any(text(tag, "Key") == key and text(tag, "Value") == value for tag in entries(request, "Tags"))


def _preemption(request: Object) -> Iterator[str]:
    if not text(part(request, "CheckpointConfig"), "S3Uri") and _asks_for(request, "resize-by", "members"):
        yield (
            "This job may be preempted: unless its script writes checkpoints to S3 or a shared file system by itself, "
            "it would start over."
        )
    elif not text(part(request, "CheckpointConfig"), "S3Uri"):
        yield (
            "This job may be preempted and has no CheckpointConfig, so it would start over: set "
            "CheckpointConfig.S3Uri and save checkpoints, or tag it 'trainmaster:preemptible' = 'false'."
        )
    if whole(part(request, "ResourceConfig"), "KeepAlivePeriodInSeconds"):
        yield (
            "This job may be preempted, and keeps a warm pool: if it is preempted, the queue sets "
            "KeepAlivePeriodInSeconds to 0 so that the instances go to the job that needs them. Do not rely on the "
            "pool's cache."
        )


def _runtime(request: Object) -> Iterator[str]:
    if whole(part(request, "StoppingCondition"), "MaxRuntimeInSeconds") is None:
        yield (
            "StoppingCondition.MaxRuntimeInSeconds is not set, so SageMaker stops the job after a day and the queue "
            "expects it to take that long, which makes the estimated starts of the jobs behind it late: set it to "
            "the longest time the job should take."
        )


def _misspelt_priority(request: Object) -> Iterator[str]:
    for tag in entries(request, "Tags"):
        key = text(tag, "Key") or ""
        if key != PRIORITY_TAG and key.strip().casefold() == PRIORITY_TAG:
            yield (f"The tag {shown(key)} does not set the priority: the queue reads '{PRIORITY_TAG}', in lower case.")
