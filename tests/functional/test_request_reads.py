"""Each API request reads what its answer needs: no snapshot of the queue, or one, never two.

Counted at the `Store` port, and in the calls that a DynamoDB engine receives.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from benchmarks.common.engine import engine
from benchmarks.common.world import make_table

from api_world import ApiWorld, CountingStore
from builders import G5, P5, a_held_job, a_job, a_request, a_running_job, at, pools_of
from trainmaster.adapters.dynamodb.store import DynamoStore
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.capacity.external import ExternalJob
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.policy.settings import Budget, Policy, Share, WhenSpent

TABLE = "reads"
BUDGET = Budget(gpu_hours=16, period=timedelta(days=1), when_spent=WhenSpent.REFUSE)
POLICY = Policy(shares={"research": Share(name="research", budget=BUDGET)})


@dataclass
class Calls:
    """The calls that a DynamoDB client makes, by operation and partition; reading all of `STATE` is a snapshot."""

    client: object
    counts: Counter = field(default_factory=Counter)

    def __post_init__(self):
        self.client.meta.events.register("provide-client-params.dynamodb.*", self._count)

    def _count(self, params, model, **_):
        values = params.get("ExpressionAttributeValues", {})
        partition = values.get(":pk", {}).get("S", "").partition("#")[0]
        self.counts["snapshot" if values == {":pk": {"S": "STATE"}} else f"{model.name} {partition}".strip()] += 1


@pytest.fixture(scope="module")
def dynamodb():
    with engine() as client:
        make_table(client, TABLE)
        yield Calls(client)


def fill(world):
    world.seed(
        a_running_job("running", units={P5: 2}),
        *(a_job(f"waiting-{n}", entry_time=at(n)) for n in range(3)),
        a_held_job("held"),
    )
    world.store.calls.clear()
    return world


def memory_world():
    world = ApiWorld()
    world.memory._policy = POLICY
    return fill(world)


@pytest.fixture(scope="module")
def dynamo_world(dynamodb):
    world = ApiWorld()
    table = Table(dynamodb.client, TABLE, lambda seconds: None)
    world.memory = DynamoStore(
        table, default_pools=world.pools, parameter="", policy=POLICY, now=world.application.clock.now
    )
    world.store = world.application.store = CountingStore(world.memory)
    return fill(world)


P5_POOL = {"instanceType": P5, "cap": 2}
G4 = "ml.g4dn.xlarge"
REQUESTS = {
    "DELETE": ("DELETE", "/jobs/waiting-0", None, 200, 0),
    "DELETE of a job that runs": ("DELETE", "/jobs/running", None, 202, 0),
    "PATCH": ("PATCH", "/jobs/waiting-1", {"priority": 3}, 200, 1),
    "PATCH of a job that is held then": ("PATCH", "/jobs/waiting-1", {"hold": True}, 200, 0),
    "why": ("GET", "/jobs/waiting-2?why=true", None, 200, 1),
    "why of a job that runs": ("GET", "/jobs/running?why=true", None, 200, 0),
    "a job": ("GET", "/jobs/waiting-2", None, 200, 1),
    "jobs": ("GET", "/jobs", None, 200, 1),
    "jobs that run": ("GET", "/jobs?state=running", None, 200, 0),
    "queue": ("GET", "/queue", None, 200, 1),
    "pools": ("GET", "/pools", None, 200, 1),
    "shares": ("GET", "/shares", None, 200, 1),
    "usage": ("GET", "/usage", None, 200, 0),
    "settings": ("GET", "/settings", None, 200, 0),
    "plan": ("POST", "/plan", a_request("planned"), 200, 1),
    "plan in a share with a budget": ("POST", "/plan", a_request("planned", options={"share": "research"}), 200, 1),
    "submission": ("POST", "/add-job", a_request("new"), 202, 1),
    "submission again": ("POST", "/add-job", a_request("new"), 200, 1),
    "submission in a share with a budget": (
        "POST",
        "/add-job",
        a_request("billed", options={"share": "research"}),
        202,
        1,
    ),
    "submission of a job that waits for another": (
        "POST",
        "/add-job",
        a_request("later", options={"after": "waiting-2"}),
        202,
        0,
    ),
    "a pool's new cap": ("PATCH", f"/pools/{P5}", {"cap": 3}, 200, 1),
    "pools, none of which is new": ("PUT", "/pools", {"pools": [P5_POOL]}, 200, 1),
    "pools, one of which is new": ("PUT", "/pools", {"pools": [P5_POOL, {"instanceType": G5, "cap": 1}]}, 200, 1),
    "a new pool": ("PUT", "/pools/lab", {"instanceType": G5, "cap": 1}, 200, 1),
    "a pool of another type": ("PUT", "/pools/lab", {"instanceType": G4, "cap": 1}, 200, 1),
    "removal of a pool": ("DELETE", "/pools/lab", None, 200, 1),
}
"""Method, path, body, expected status, and the snapshots that the request reads; in an order in which all succeed."""


def send(world, name):
    method, path, body, status, snapshots = REQUESTS[name]
    path, _, query = path.partition("?")
    reply = world.event(method, path, body, dict([query.split("=")]) if query else None)
    assert reply.status == status, reply.body
    return snapshots


def test_each_request_reads_as_many_snapshots_as_its_answer_needs():
    world = memory_world()
    for name in REQUESTS:
        world.store.calls.clear()
        snapshots = send(world, name)
        assert world.store.calls["read_snapshot"] == snapshots, name


def test_each_request_reads_the_state_as_often_in_dynamodb(dynamo_world, dynamodb):
    for name in REQUESTS:
        dynamodb.counts.clear()
        snapshots = send(dynamo_world, name)
        assert dynamodb.counts["snapshot"] == snapshots, name


def test_the_calls_of_a_cancellation_and_of_a_submission_are_these(dynamo_world, dynamodb):
    dynamo_world.submit("once", priority=1)
    dynamodb.counts.clear()
    assert dynamo_world.delete("/jobs/once").status == 200
    assert dynamodb.counts == {
        "GetItem": 2,  # the row of an active job, which is not there, and the pass number
        "BatchGetItem": 1,
        "Query JOB": 1,
        "TransactWriteItems": 1,
        "Query AFTER": 1,
    }
    dynamodb.counts.clear()
    dynamo_world.submit("again", priority=1)
    assert dynamodb.counts == {"GetItem": 2, "TransactWriteItems": 1, "snapshot": 1, "Query WAIT": 1}


@pytest.mark.parametrize("counted", [True, False])
def test_the_answer_about_changed_pools_counts_the_external_jobs_that_these_pools_count(counted):
    """It is made from the snapshot that was read before the change."""
    world = ApiWorld(pools=pools_of(Pool(P5, 4, count_external=not counted)))
    world.memory.update_external_jobs({"external": ExternalJob({P5: 1, G5: 2})})
    both = [{"instanceType": name, "cap": 4, "countExternal": counted} for name in (P5, G5)]
    answer = world.put("/pools", {"pools": both}).body
    assert {pool["name"]: pool["external"] for pool in answer["pools"]} == (
        {P5: 1, G5: 2} if counted else {P5: 0, G5: 0}
    )
    assert answer["pools"] == world.get("/pools").body["pools"]
