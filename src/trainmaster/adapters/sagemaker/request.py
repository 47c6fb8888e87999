"""Builds an attempt's CreateTrainingJob request from its job's: name, ownership tags, and remaining types.

Pure. Every other member stays as submitted.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.domain.errors import RequestRefused
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.requests.resource_text import sendable
from trainmaster.domain.requests.tag_names import ATTEMPT_TAGS, SHARE_TAG
from trainmaster.domain.requests.tags import MAX_TAGS

QUEUE_TAG, JOB_TAG, ATTEMPT_TAG, START_TAG, SUBMITTER_TAG = ATTEMPT_TAGS
MAX_TAG_VALUE_LENGTH = 256
_TAG_SIGNS = frozenset("_.:/=+-@")
_TAG_KINDS = frozenset("LNZ")
"""First letters of the Unicode categories of letters, numbers and separators."""

Request = Mapping[str, Any]


def attempt_request(job: Job, attempt: Attempt, request: Request, queue: str) -> dict[str, Any]:
    """Return the CreateTrainingJob request of one attempt.

    Args:
        job: the attempt's job.
        attempt: gives the name and, if several alternatives fit, the types that SageMaker may choose from.
        request: as submitted.
        queue: the queue's name.

    Raises `RequestRefused` if the attempt has types that the request does not name.
    """
    built = {**request, "TrainingJobName": attempt.training_job_name}
    built["Tags"] = _all_tags(sendable(request).get("Tags") or (), job, attempt, queue)
    if attempt.choices and built.get("ResourceConfig", {}).get("InstancePreferences"):
        built["ResourceConfig"] = _with_choices(built["ResourceConfig"], attempt.choices)
    return built


def own_tags(job: Job, attempt: Attempt, queue: str) -> dict[str, str]:
    """Return the tags that mark a training job as this attempt's."""
    named = {QUEUE_TAG: queue, JOB_TAG: job.name, ATTEMPT_TAG: str(attempt.number), START_TAG: attempt.start_id}
    return {key: tag_value(value) for key, value in named.items()}


def tag_value(text: str) -> str:
    """Return the text as a valid tag value (SageMaker API, `Tag`): other characters become `_`, at most 256."""
    return "".join(character if _is_allowed(character) else "_" for character in text[:MAX_TAG_VALUE_LENGTH])


def _is_allowed(character: str) -> bool:
    return character in _TAG_SIGNS or unicodedata.category(character)[0] in _TAG_KINDS


def _all_tags(given: Sequence[Request], job: Job, attempt: Attempt, queue: str) -> list[Request]:
    """Return the user's tags and the queue's: those that mark the attempt, and its share and submitter for costs."""
    own = own_tags(job, attempt, queue) | ({SUBMITTER_TAG: tag_value(job.submitted_by)} if job.submitted_by else {})
    tags = [*_without_own_tags(given), *({"Key": key, "Value": value} for key, value in own.items())]
    has_share = any(tag["Key"] == SHARE_TAG for tag in given)
    # A job of an earlier release may have as many tags as there may be.
    return tags if has_share or len(tags) >= MAX_TAGS else [*tags, {"Key": SHARE_TAG, "Value": tag_value(job.share)}]


def _without_own_tags(tags: Sequence[Request]) -> list[Request]:
    """Return the user's tags without the queue's keys: SageMaker refuses a repeated key."""
    return [tag for tag in tags if tag["Key"] not in ATTEMPT_TAGS]


def _with_choices(config: Request, choices: Sequence[str]) -> dict[str, Any]:
    """Return the configuration with these types alone: the alternatives that fit under the caps."""
    entries = {entry["InstanceType"]: entry for entry in config["InstancePreferences"]}
    if unknown := [name for name in choices if name not in entries]:
        raise RequestRefused(f"the request does not list {', '.join(unknown)} in InstancePreferences")
    return {**config, "InstancePreferences": [entries[name] for name in choices]}
