"""Service jobs of AWS Batch on the shipped API: what the client makes of them is what the API takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import httpx
import pytest

from api_fuzz import as_wsgi
from api_world import ApiWorld
from builders import P5, a_request
from trainmaster.client.api.client import ApiClient
from trainmaster.client.batch.hook import route_batch

QUEUE = "training"


@pytest.fixture
def world() -> ApiWorld:
    return ApiWorld()


@pytest.fixture
def batch(world: ApiWorld) -> Iterator[Any]:
    session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    transport: Any = httpx.WSGITransport(app=as_wsgi(world))
    with ApiClient("https://api", session=session, transport=transport, environ={}) as api:
        route_batch(session, api, queues=[QUEUE])
        yield session.client("batch")


def submit(batch: Any, name: str, **changes: Any) -> str:
    payload = json.dumps({key: value for key, value in a_request("payload").items() if key != "Tags"})
    given = {"jobName": name, "jobQueue": QUEUE, "serviceJobType": "SAGEMAKER_TRAINING"}
    job_id: str = batch.submit_service_job(**given, serviceRequestPayload=payload, **changes)["jobId"]
    return job_id


def test_equal_names_and_tokens_are_told_apart_by_the_api(batch: Any, world: ApiWorld) -> None:
    ids = [submit(batch, "my_job", clientToken=token) for token in ("first", "second", "first")]
    ids += [submit(batch, "plain", clientToken=token) for token in ("first", "second", "first", "second")]
    assert len(set(ids)) == 4
    assert ids[0] == ids[2] != ids[1]
    assert (ids[3], ids[4]) == ("tm.plain", ids[6])
    filters = [{"name": "JOB_NAME", "values": ["MY_JOB"]}]
    found = batch.list_service_jobs(jobQueue=QUEUE, filters=filters)["jobSummaryList"]
    assert [(job["jobName"], job["status"]) for job in found] == [("my_job", "RUNNABLE")] * 2


def test_options_of_batch_are_options_of_the_api(batch: Any, world: ApiWorld) -> None:
    options = {
        "schedulingPriority": 7,
        "retryStrategy": {"attempts": 3},
        "preemptionConfiguration": {"preemptionRetriesBeforeTermination": 2},
        "timeoutConfig": {"attemptDurationSeconds": 60},
        "quotaShareName": "vision",
        "tags": {"team": "vision", "trainmaster:group": "sweep"},
    }
    submit(batch, "job1", **options)
    described = batch.describe_service_job(jobId="tm.job1")
    shown = {member: described[member] for member in ("schedulingPriority", "quotaShareName", "timeoutConfig")}
    assert shown == {member: options[member] for member in shown}
    assert described["retryStrategy"]["attempts"] == 3
    assert options["tags"].items() <= described["tags"].items()
    assert batch.update_service_job(jobId="tm.job1", schedulingPriority=0)["jobName"] == "job1"
    assert batch.describe_service_job(jobId="tm.job1")["schedulingPriority"] == 0


def test_a_terminated_job_has_failed_with_the_reason(batch: Any) -> None:
    submit(batch, "job1")
    batch.terminate_service_job(jobId="tm.job1", reason="wrong data")
    described = batch.describe_service_job(jobId="tm.job1")
    assert (described["status"], described["statusReason"], described["isTerminated"]) == ("FAILED", "wrong data", True)
    failed = batch.list_service_jobs(jobQueue=QUEUE, jobStatus="FAILED")["jobSummaryList"]
    assert [job["jobId"] for job in failed] == ["tm.job1"]
    assert batch.terminate_service_jobs(jobs=["tm.job1", "tm.gone"], reason="again")["errors"] == []


def test_the_snapshot_and_the_resources_are_the_queues(batch: Any) -> None:
    submit(batch, "job1", shareIdentifier="vision")
    snapshot = batch.get_job_queue_snapshot(jobQueue=QUEUE)
    assert [job["jobArn"].rpartition("/")[2] for job in snapshot["frontOfQueue"]["jobs"]] == ["tm.job1"]
    (environment,) = batch.describe_service_environments(serviceEnvironments=[QUEUE])["serviceEnvironments"]
    assert P5 in {limit["capacityUnit"] for limit in environment["capacityLimits"]}
    arn = batch.describe_job_queues(jobQueues=[QUEUE])["jobQueues"][0]["jobQueueArn"]
    assert batch.describe_quota_share(quotaShareArn=f"{arn}/quota-share/vision")["status"] == "VALID"
    assert batch.list_quota_shares(jobQueue=QUEUE)["quotaShares"]


def test_an_invalid_option_is_batchs_error(batch: Any) -> None:
    with pytest.raises(batch.exceptions.ClientException, match="trainmaster:groop"):
        submit(batch, "job1", tags={"trainmaster:groop": "sweep"})
    with pytest.raises(batch.exceptions.ClientException, match="vision 1"):
        submit(batch, "job1", shareIdentifier="vision 1")
