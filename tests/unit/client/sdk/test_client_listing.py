"""ListTrainingJobs lists each job once: those of the queue beside those that only SageMaker has."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

import httpx
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from client_world import API, World, a_session, request_for, transport_to
from hypothesis import given
from hypothesis import strategies as st

from samples import examples
from trainmaster import ApiClient, route_to_queue
from trainmaster.client.lists.expressions import matches

PLAN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/plan"
LONG = "a" * 60
FATES = (
    "foreign", "waits", "held", "starts", "runs", "ends", "fails", "cancelled", "never-launched", "preempting",
    "preempted", "runs-again", "ends-again", "lost-base",
)  # fmt: skip


class Raw(io.BytesIO):
    """A body as botocore reads it from urllib3."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


class Network:
    """Brings a client's requests to a world, which a test can replace, without sockets."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.session = a_session()
        transport = httpx.MockTransport(lambda request: transport_to(self.world).handler(request))
        self.sagemaker: Any = self.session.client("sagemaker")
        route_to_queue(
            self.session, ApiClient(API, session=self.session, transport=transport), clients=[self.sagemaker]
        )
        self.sagemaker.meta.events.register("before-send.sagemaker", self.send)

    def send(self, request: Any, **_: object) -> AWSResponse:
        target = {"x-amz-target": request.headers["x-amz-target"].decode()}
        status, body = self.world.handle(request.method, "/", target, request.body)
        return AWSResponse(request.url, status, {}, Raw(json.dumps(body).encode()))


@cache
def network() -> Network:
    return Network(World())


def a_client(world: World) -> Any:
    """A routed SageMaker client on the world."""
    network().world = world
    return network().sagemaker


def lead(world: World, sagemaker: Any, name: str, fate: str, second: int) -> None:
    """Bring a job to its fate, with times of its own."""
    config = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10}
    plan = {"TrainingPlanArn": PLAN} if second % 3 == 0 else {}
    request = request_for(name, ResourceConfig=config | plan)
    if fate == "foreign":
        world.train(request)
    else:
        sagemaker.create_training_job(**request)
        script(world, name, fate)
    stamp(world, name, second)


def script(world: World, name: str, fate: str) -> None:
    if fate in ("cancelled", "held"):
        world.jobs[name] |= {"jobState": fate}
    if fate == "never-launched":
        world.jobs[name] |= {"jobState": "failed", "failureReason": "no such image"}
    if fate in ("waits", "held", "cancelled", "never-launched"):
        return
    world.start(name, heard_by_sagemaker=fate != "starts")
    if fate in ("preempting", "preempted", "runs-again", "ends-again"):
        world.preempt(name)
    if fate in ("preempted", "runs-again", "ends-again"):
        world.settle(name)
    if fate in ("runs-again", "ends-again"):
        world.start(name)
    if fate == "lost-base":
        world.lose_base(name, f"{name}-qstamp-1-m1")
    if fate in ("ends", "ends-again"):
        world.end(name)
    if fate == "fails":
        world.end(name, "Failed", "AlgorithmError")


def stamp(world: World, name: str, second: int) -> None:
    """Set all times of a job, equal at the queue and at SageMaker."""
    at = 1_800_000_000 + 60 * second
    for training in (job for key, job in world.trainings.items() if key == name or key.startswith(f"{name[:40]}")):
        if training.get("stamped", name) == name:
            training |= {"CreationTime": float(at), "LastModifiedTime": float(at), "stamped": name}
            training.pop("TrainingEndTime", None)
    if name in world.jobs:
        text = datetime.fromtimestamp(at, UTC).isoformat()
        world.jobs[name]["entryTime"] = text
        for attempt in world.jobs[name]["attempts"]:
            attempt |= {key: text for key in ("createdAt", "startedAt", "endedAt") if attempt[key]}


FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "NameContains": st.sampled_from(["a", "b-", "qstamp", "x1", LONG[:50]]),
        "StatusEquals": st.sampled_from(["InProgress", "Completed", "Failed", "Stopping", "Stopped"]),
        "CreationTimeAfter": st.integers(-1, 8),
        "CreationTimeBefore": st.integers(0, 9),
        "LastModifiedTimeAfter": st.integers(-1, 8),
        "LastModifiedTimeBefore": st.integers(0, 9),
        "TrainingPlanArnEquals": st.just(PLAN),
        "SortBy": st.sampled_from(["Name", "CreationTime", "Status"]),
        "SortOrder": st.sampled_from(["Ascending", "Descending"]),
    },
)
NAMES = st.sampled_from(["a", "a-b", "b-1", "b-2", "x1", "x1-a", LONG, LONG + "b", "c"])


def wanted(job: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Return whether a described job matches a filter: an independent reading of the operation's page."""
    after = [job[key] > asked[f"{key}After"] for key in ("CreationTime", "LastModifiedTime") if f"{key}After" in asked]
    before = [
        job[key] < asked[f"{key}Before"] for key in ("CreationTime", "LastModifiedTime") if f"{key}Before" in asked
    ]
    return (
        all(after + before)
        and asked.get("NameContains", "") in job["TrainingJobName"]
        and asked.get("StatusEquals", job["TrainingJobStatus"]) == job["TrainingJobStatus"]
        and asked.get("TrainingPlanArnEquals") in (None, job["ResourceConfig"].get("TrainingPlanArn"))
    )


@examples(150, deadline=None)
@given(
    st.dictionaries(NAMES, st.tuples(st.sampled_from(FATES), st.integers(0, 8)), max_size=7), FILTERS, st.integers(1, 5)
)
def test_the_merged_list_is_the_filter_of_the_union(
    jobs: dict[str, tuple[str, int]], asked: dict[str, Any], size: int
) -> None:
    world = World()
    sagemaker = a_client(world)
    for name, (fate, second) in jobs.items():
        lead(world, sagemaker, name, fate, second)
    times = [key for key in asked if "Time" in key and isinstance(asked[key], int)]
    asked |= {key: datetime.fromtimestamp(1_800_000_000 + 60 * asked[key], UTC) for key in times}
    union = [sagemaker.describe_training_job(TrainingJobName=name) for name in jobs]

    pages = list(sagemaker.get_paginator("list_training_jobs").paginate(PaginationConfig={"PageSize": size}, **asked))
    listed = [entry for page in pages for entry in page["TrainingJobSummaries"]]

    names = [entry["TrainingJobName"] for entry in listed]
    assert sorted(names) == sorted(job["TrainingJobName"] for job in union if wanted(job, asked))
    assert all(len(page["TrainingJobSummaries"]) <= size for page in pages)
    by_name = {job["TrainingJobName"]: job for job in union}
    member = {"Name": "TrainingJobName", "Status": "TrainingJobStatus"}.get(asked.get("SortBy", ""), "CreationTime")
    down = asked.get("SortOrder", "Descending" if member == "CreationTime" else "Ascending") == "Descending"
    keys = [by_name[name][member] for name in names]
    assert keys == sorted(keys, reverse=down)
    for entry in listed:
        described = by_name[entry["TrainingJobName"]]
        for key in ("TrainingJobStatus", "CreationTime", "LastModifiedTime"):
            assert entry[key] == described[key]


def names_of(answer: dict[str, Any]) -> list[str]:
    return [entry["TrainingJobName"] for entry in answer["TrainingJobSummaries"]]


def test_a_warm_pool_has_the_name_of_its_job() -> None:
    world = World()
    sagemaker = a_client(world)
    for name, fate in {"job1": "ends-again", "other": "foreign", "waiting": "waits"}.items():
        lead(world, sagemaker, name, fate, 1)
    for training in ("job1", "job1-qstamp-2", "other"):
        world.trainings[training]["WarmPoolStatus"] = {"Status": "Available"}
    assert sorted(names_of(sagemaker.list_training_jobs(WarmPoolStatusEquals="Available"))) == ["job1", "other"]


def test_the_jobs_of_the_queue_are_read_once_for_all_pages() -> None:
    world = World()
    sagemaker = a_client(world)
    for number in range(9):
        lead(world, sagemaker, f"job{number}", "waits", number)
    before = world.count("GET", "/jobs")
    pages = sagemaker.get_paginator("list_training_jobs").paginate(PaginationConfig={"PageSize": 2})
    assert [len(names_of(page)) for page in pages] == [2, 2, 2, 2, 1]
    assert world.count("GET", "/jobs") - before <= 2


def test_a_token_of_sagemakers_own_is_passed_on() -> None:
    world = World()
    sagemaker = a_client(world)
    for number in range(3):
        lead(world, sagemaker, f"job{number}", "foreign", number)
    assert names_of(sagemaker.list_training_jobs(NextToken="1")) == ["job1", "job0"]


def test_without_the_queue_there_is_no_list_that_could_mislead() -> None:
    world = World()
    sagemaker = a_client(world)
    world.outage = [400]
    with pytest.raises(ClientError, match="ListTrainingJobs"):
        sagemaker.list_training_jobs()


# -- Search


def found(sagemaker: Any, filters: list[dict[str, str]], size: int = 10) -> list[str]:
    asked = (
        {"Resource": "TrainingJob", "SearchExpression": {"Filters": filters}}
        if filters
        else {"Resource": "TrainingJob"}
    )
    pages = list(sagemaker.get_paginator("search").paginate(PaginationConfig={"PageSize": size}, **asked))
    assert all(len(page["Results"]) <= size for page in pages)
    return [result["TrainingJob"]["TrainingJobName"] for page in pages for result in page["Results"]]


@pytest.mark.parametrize("size", [1, 2, 10])
def test_a_search_finds_waiting_jobs_and_newest_attempts_under_their_names(size: int) -> None:
    world = World()
    sagemaker = a_client(world)
    fates = {"b-1": "waits", "b-2": "preempted", "x1": "runs-again", "c": "foreign", "a": "preempting", "z": "ends"}
    for second, (name, fate) in enumerate(fates.items()):
        lead(world, sagemaker, name, fate, second)
    running = [{"Name": "TrainingJobStatus", "Operator": "Equals", "Value": "InProgress"}]
    assert found(sagemaker, [], size) == ["z", "a", "c", "x1", "b-2", "b-1"]
    assert set(found(sagemaker, running, size)) == {"c", "x1", "b-2", "b-1"}


def test_a_search_for_other_resources_is_sagemakers_alone() -> None:
    world = World()
    sagemaker = a_client(world)
    sagemaker.search(Resource="Experiment")
    assert world.calls == [("POST", "Search")]


def condition(name: str, kind: str, value: str | None = None) -> dict[str, str]:
    return {"Name": name, "Operator": kind} | ({} if value is None else {"Value": value})


JOB = {
    "TrainingJobName": "job1",
    "CreationTime": datetime(2026, 5, 1, tzinfo=UTC),
    "HyperParameters": {"lr": "0.1"},
    "Tags": [{"Key": "team.name", "Value": "red"}],
    "EnableManagedSpotTraining": False,
    "InputDataConfig": [{"ChannelName": "a", "InputMode": "File"}, {"ChannelName": "b", "InputMode": "Pipe"}],
}


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [
        (condition("TrainingJobName", "Contains", "ob"), True),
        (condition("TrainingJobName", "In", "job0,job1"), True),
        (condition("TrainingJobName", "NotEquals", "job1"), False),
        (condition("CreationTime", "GreaterThan", "2026-04-30T00:00:00Z"), True),
        (condition("CreationTime", "LessThan", "2026-04-30T00:00:00Z"), False),
        (condition("HyperParameters.lr", "LessThanOrEqualTo", "0.10"), True),
        (condition("HyperParameters.lr", "Equals", "0.10"), True),
        (condition("Tags.team.name", "Equals", "red"), True),
        (condition("Tags.team", "Exists"), False),
        (condition("Tags.team", "NotExists"), True),
        (condition("EnableManagedSpotTraining", "Equals", "false"), True),
        (condition("InputDataConfig.ChannelName", "Equals", "b"), True),
    ],
)
def test_conditions_of_a_search(asked: dict[str, str], outcome: bool) -> None:
    assert matches(JOB, {"Filters": [asked]}) is outcome
    assert (
        matches(JOB, {"Filters": [asked, condition("TrainingJobName", "Equals", "other")], "Operator": "Or"}) is outcome
    )
    assert matches(JOB, {"SubExpressions": [{"Filters": [asked]}]}) is outcome


@pytest.mark.parametrize(("mode", "outcome"), [("File", False), ("Pipe", True)])
def test_nested_filters_of_a_search_apply_to_one_item(mode: str, outcome: bool) -> None:
    filters = [
        condition("InputDataConfig.ChannelName", "Equals", "b"),
        condition("InputDataConfig.InputMode", "Equals", mode),
    ]
    nested = {"NestedPropertyName": "InputDataConfig", "Filters": filters}
    assert matches(JOB, {"NestedFilters": [nested]}) is outcome
