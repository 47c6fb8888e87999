"""Turns a SubmitServiceJob request into the CreateTrainingJob requests that the queue takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.client.api.errors import Refused
from trainmaster.client.batch.names import candidate_names, token_digest
from trainmaster.domain.requests.tag_names import OPTION_PREFIX, PRIORITY_TAG, SHARE_TAG

NAME_TAG = "batch:job-name"
"""Tag with the name of the job at Batch, which the queue's name may not be able to hold."""
TOKEN_TAG = "batch:client-token"  # noqa: S105 -- the key of a tag
"""Tag with a hash of the call's `clientToken`: two calls differ in it, and a repeated one does not."""
JOB_TYPE = "SAGEMAKER_TRAINING"
OWN_TAGS = frozenset({NAME_TAG, TOKEN_TAG})
DEFAULT_TIMEOUT_SECONDS = 86_400
"""Timeout that SageMaker's SDK sends with every job for which its user gives none."""
RETRY_TAGS = {
    f"{OPTION_PREFIX}retry-service": "InternalServerError",
    f"{OPTION_PREFIX}retry-capacity": "CapacityError",
    f"{OPTION_PREFIX}retry-algorithm": "AlgorithmError",
}
"""Tags of retries, with the word in the status reason of the failures that each retries."""
REASON_PREFIX = "Received status from SageMaker:"
"""Begins the status reasons of failures at Batch, some with a blank after it."""
PREEMPTIONS_TAG = f"{OPTION_PREFIX}max-preemptions"
PREEMPTIBLE_TAG = f"{OPTION_PREFIX}preemptible"

_NO_PREEMPTION = (
    "preemptionRetriesBeforeTermination is 0: the queue has no jobs that end when they are preempted, so this one is "
    "not preempted at all."
)


@dataclass(frozen=True, slots=True)
class Submission:
    """A request of Batch's as the queue takes it.

    Attributes:
        payload: the CreateTrainingJob request, whose name is one of `names`.
        names: names to submit it under, until one is free.
        warnings: options that the queue carries out in another way than Batch.
    """

    payload: dict[str, Any]
    names: tuple[str, ...]
    warnings: tuple[str, ...]

    def requests(self) -> Iterator[dict[str, Any]]:
        """Yield the request under each of the names."""
        for name in self.names:
            yield {**self.payload, "TrainingJobName": name}


def submission_of(request: Mapping[str, Any], share: str | None = None) -> Submission:
    """Return the submission for a SubmitServiceJob request to a queue that stands for a share, if any. Raises Refused.

    As in SageMaker's SDK, the tags of the payload win over those of the request.
    """
    payload = _payload_of(request)
    tags = {**request.get("tags", {}), **_tags_in(payload.pop("Tags", None))}
    warnings = list(_apply_options(request, tags, share))
    token = request["clientToken"]
    tags |= {NAME_TAG: request["jobName"], TOKEN_TAG: token_digest(token)}
    _limit_run_time(payload, request.get("timeoutConfig", {}).get("attemptDurationSeconds"))
    payload["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
    return Submission(payload, tuple(candidate_names(request["jobName"], token)), tuple(warnings))


def _payload_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the CreateTrainingJob request inside a request, without null members, as AWS reads it.

    Raises Refused if it is none.
    """
    if request["serviceJobType"] != JOB_TYPE:
        hint = f"The queue has jobs of type {JOB_TYPE}."
        raise Refused(f"There is no service job type {request['serviceJobType']!r}.", field="serviceJobType", hint=hint)
    try:
        payload = json.loads(request["serviceRequestPayload"], object_hook=_without_nulls)
    except ValueError as error:
        raise Refused(f"serviceRequestPayload is not valid JSON: {error}", field="serviceRequestPayload") from error
    if not isinstance(payload, dict) or "RoleArn" not in payload:
        hint = "It is a CreateTrainingJob request with a RoleArn."
        raise Refused("serviceRequestPayload is no training job.", field="serviceRequestPayload", hint=hint)
    return payload


def _without_nulls(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _tags_in(tags: Any) -> dict[str, str]:
    """Return the tags of a payload. Raises Refused if they are none."""
    try:
        return {tag["Key"]: tag["Value"] for tag in tags or ()}
    except (KeyError, TypeError) as error:
        hint = "It is a list of objects with Key and Value."
        raise Refused("Tags of serviceRequestPayload is invalid.", field="serviceRequestPayload", hint=hint) from error


def _apply_options(request: Mapping[str, Any], tags: dict[str, str], queue_share: str | None) -> Iterator[str]:
    """Add the tags for a request's options; yield warnings."""
    if "schedulingPriority" in request:
        tags[PRIORITY_TAG] = str(request["schedulingPriority"])
    share = request.get("shareIdentifier") or request.get("quotaShareName") or queue_share
    if share:
        tags[SHARE_TAG] = share
    yield from _apply_retries(request.get("retryStrategy", {}), tags)
    yield from _apply_preemption(request.get("preemptionConfiguration", {}), tags)


def _apply_retries(strategy: Mapping[str, Any], tags: dict[str, str]) -> Iterator[str]:
    """Add a tag for each kind of failure that the strategy retries; yield warnings for rules of no known kind."""
    retries = strategy.get("attempts", 1) - 1
    if retries < 1:
        return
    rules = [(rule.get("onStatusReason", "*").lower(), rule["action"]) for rule in strategy.get("evaluateOnExit", ())]
    for tag, word in RETRY_TAGS.items():
        # Batch retries what no rule matches.
        action = next((action for pattern, action in rules if _matches(pattern, word)), "RETRY")
        if action.upper() == "RETRY":
            tags.setdefault(tag, str(retries))
    for pattern, _ in rules:
        if not any(_matches(pattern, word) for word in RETRY_TAGS.values()):
            yield f"The queue has no failures of the kind {pattern!r}; this rule of evaluateOnExit has no effect."


def _matches(pattern: str, word: str) -> bool:
    """Return whether a pattern, in lower case, is of failures of this kind: it names the kind, or is a beginning."""
    reasons = (f"{REASON_PREFIX}{blank}{word}".lower() for blank in ("", " "))
    is_beginning = pattern.endswith("*") and any(reason.startswith(pattern[:-1]) for reason in reasons)
    return is_beginning or word.lower() in pattern


def _apply_preemption(preemption: Mapping[str, Any], tags: dict[str, str]) -> Iterator[str]:
    """Add the tag of a limit of preemptions: Batch ends the job at the limit, the queue protects it from then on."""
    limit = preemption.get("preemptionRetriesBeforeTermination")
    if limit is None or limit < 0:
        return
    if limit == 0:
        tags.setdefault(PREEMPTIBLE_TAG, "false")
        yield _NO_PREEMPTION
        return
    tags.setdefault(PREEMPTIONS_TAG, str(limit))
    yield f"After {limit} preemptions, Batch ends a job; the queue does not preempt it any more."


def _limit_run_time(payload: dict[str, Any], timeout: int | None) -> None:
    """Limit each attempt to the smaller of both limits; the SDK's default counts only if the payload has none.

    An invalid limit of the payload stays, for the API to name it.
    """
    condition = payload.get("StoppingCondition") or {}
    own = condition.get("MaxRuntimeInSeconds", timeout) if isinstance(condition, dict) else condition
    if timeout is None or not isinstance(own, int) or own < timeout:
        return
    if own == timeout or timeout != DEFAULT_TIMEOUT_SECONDS:
        payload["StoppingCondition"] = {**condition, "MaxRuntimeInSeconds": timeout}
