"""From a job's request to its attempt's: the name, the tags that say whose it is, the types left to choose from.

Pure: equal arguments, equal request. It must not change, drop or invent any other member, nor the request it is
given.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.domain.errors import RequestRefused
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.requests import sendable
from trainmaster.domain.requests.tag_names import ATTEMPT_TAGS

QUEUE_TAG, JOB_TAG, ATTEMPT_TAG = ATTEMPT_TAGS
MAX_TAG_VALUE_LENGTH = 256
_TAG_SIGNS = frozenset("_.:/=+-@")
_TAG_KINDS = frozenset("LNZ")
"""First letters of the Unicode categories of letters, numbers and separators."""

Request = Mapping[str, Any]


def attempt_request(job: Job, attempt: Attempt, request: Request, queue: str) -> dict[str, Any]:
    """The CreateTrainingJob request of one attempt.

    Args:
        job: whose attempt it is.
        attempt: gives the name and, where several alternatives fit, the types left to SageMaker to choose from.
        request: as submitted.
        queue: the queue's name.

    Raises `RequestRefused` where the attempt was given types that the request does not name.
    """
    made = {**request, "TrainingJobName": attempt.training_job_name}
    made["Tags"] = [*_foreign(sendable(request).get("Tags") or ()), *_own_tags(job, attempt, queue)]
    if attempt.choices and made.get("ResourceConfig", {}).get("InstancePreferences"):
        made["ResourceConfig"] = _narrowed(made["ResourceConfig"], attempt.choices)
    return made


def own_tags(job: Job, attempt: Attempt, queue: str) -> dict[str, str]:
    """The tags by which an attempt's training job is known as ours."""
    named = {QUEUE_TAG: queue, JOB_TAG: job.name, ATTEMPT_TAG: str(attempt.number)}
    return {key: tag_value(value) for key, value in named.items()}


def tag_value(text: str) -> str:
    """The text as a tag can carry it (SageMaker API, `Tag`): other characters become `_`, at most 256 of them."""
    return "".join(each if _fits(each) else "_" for each in text[:MAX_TAG_VALUE_LENGTH])


def _fits(character: str) -> bool:
    return character in _TAG_SIGNS or unicodedata.category(character)[0] in _TAG_KINDS


def _own_tags(job: Job, attempt: Attempt, queue: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in own_tags(job, attempt, queue).items()]


def _foreign(tags: Sequence[Request]) -> list[Request]:
    """The user's tags; SageMaker refuses a key given twice, and ours must win."""
    return [tag for tag in tags if tag["Key"] not in ATTEMPT_TAGS]


def _narrowed(config: Request, choices: Sequence[str]) -> dict[str, Any]:
    """The same with these types alone: the caps carry the alternatives that fitted, and no other."""
    entries = {entry["InstanceType"]: entry for entry in config["InstancePreferences"]}
    if unknown := [name for name in choices if name not in entries]:
        raise RequestRefused(f"the request does not list {', '.join(unknown)} in InstancePreferences")
    return {**config, "InstancePreferences": [entries[name] for name in choices]}
