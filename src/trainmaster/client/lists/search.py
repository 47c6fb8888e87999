"""Merges waiting jobs into SageMaker's Search for training jobs; newest attempts have the names of their jobs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trainmaster.client.lists.expressions import matches, values_at
from trainmaster.client.lists.merging import Entry, Order, Place, merge
from trainmaster.client.lists.training_jobs import DEFAULT_SIZE, Owners, QueueJobs
from trainmaster.client.sdk.describe import correct_description, description_of
from trainmaster.client.sdk.response_codec import BotoResponse, make_response, request_of, rewrite_request
from trainmaster.client.views.states import WAITING
from trainmaster.client.views.wording import sentence_of

if TYPE_CHECKING:
    from botocore.awsrequest import AWSResponse
    from botocore.model import OperationModel

    from trainmaster.client.views.types import JobView

logger = logging.getLogger("trainmaster")
MAX_WAITING = 100
"""Maximum of waiting jobs that a search compares: it reads the request of each."""
_RESOURCE = "TrainingJob"


class Search:
    """Answers Search for training jobs; for other resources, SageMaker alone does."""

    def __init__(self, jobs: QueueJobs) -> None:
        self._jobs = jobs

    def before(
        self, model: OperationModel, params: dict[str, Any], region: str
    ) -> tuple[BotoResponse | None, Callable[[AWSResponse, dict[str, Any]], BotoResponse | None] | None]:
        """Return the response, or what changes SageMaker's; neither if it stays as it is. Raises ApiError."""
        request = request_of(params)
        place = Place.decode(request.get("NextToken"))
        if (
            place is None
            or request["Resource"] != _RESOURCE
            or request.get("CrossAccountFilterOption") == "CrossAccount"
        ):
            return None, None
        jobs = self._jobs.read(None, None, again=place != Place())
        found = self._waiting(model, [job for job in jobs if job["jobState"] in WAITING], request, region)
        own = _order(request).sort(found, place.own)
        if place.ended:
            return _response(model, ([], None), own, place, request), None
        rewrite_request(params, NextToken=place.token)
        owners = Owners({job["jobName"]: job for job in jobs})

        def merged(http: AWSResponse, parsed: dict[str, Any]) -> BotoResponse | None:
            if http.status_code >= 300:
                return None
            page = [entry for each in parsed["Results"] if (entry := _shown(each, owners))]
            return _response(model, (page, parsed.get("NextToken")), own, place, request)

        return None, merged

    def _waiting(
        self, model: OperationModel, jobs: list[JobView], request: Mapping[str, Any], region: str
    ) -> list[Entry]:
        """Return the waiting jobs that match, as botocore parses them."""
        if len(jobs) > MAX_WAITING:
            logger.warning("Search compares the first %d of %d jobs that wait in the queue.", MAX_WAITING, len(jobs))
        described = list(self._described(model, jobs[:MAX_WAITING], region))
        results: list[Entry] = make_response(model, {"Results": described})[1]["Results"]
        expression = request.get("SearchExpression", {})
        return [each for each in results if matches(each[_RESOURCE], expression)]

    def _described(self, model: OperationModel, jobs: list[JobView], region: str) -> Iterator[Entry]:
        members = model.service_model.shape_for(_RESOURCE).members  # type: ignore[attr-defined]
        for job in (self._jobs.api.job(view["jobName"]) for view in jobs):
            yield {_RESOURCE: description_of(job, region, members, sentence_of(job))}


def _shown(entry: Entry, owners: Owners) -> Entry | None:
    """Return SageMaker's entry as one of the job; None for an attempt of a waiting job and for earlier attempts."""
    description = entry.get(_RESOURCE, {})
    job = owners.owner_of(description.get("TrainingJobName", ""))
    if job is None:
        return entry
    if job["jobState"] in WAITING or description["TrainingJobName"] != job["trainingJobName"]:
        return None
    return entry | {_RESOURCE: correct_description(description, job)}


def _order(request: Mapping[str, Any]) -> Order:
    path = request.get("SortBy", "LastModifiedTime")
    descending = request.get("SortOrder", "Descending") == "Descending"
    return Order(
        lambda entry: next(values_at(entry[_RESOURCE], path), None),
        lambda entry: str(entry[_RESOURCE]["TrainingJobName"]),
        descending,
    )


def _response(
    model: OperationModel,
    page: tuple[list[Entry], str | None],
    own: list[Entry],
    place: Place,
    request: Mapping[str, Any],
) -> BotoResponse:
    results, following = merge(page, own, place, _order(request), request.get("MaxResults", DEFAULT_SIZE))
    response, parsed = make_response(model, {"Results": []})
    parsed["Results"] = results
    if following is not None:
        parsed["NextToken"] = following.encode()
    return response, parsed
