"""Eventually consistent reads that are always behind change nothing of what the queue does."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from benchmarks.common.engine import engine

from builders import P5
from trainmaster.domain.jobs.attempt import Outcome
from world import World, a_request, make_table


@dataclass
class LaggingReads:
    """A DynamoDB client whose eventually consistent reads of single rows return each as before its last write."""

    client: Any
    before: dict[str, Any] = field(default_factory=dict)
    behind: Counter[str] = field(default_factory=Counter)

    def __getattr__(self, operation: str) -> Any:
        return getattr(self.client, operation)

    def get_item(self, **params: Any) -> Any:
        if params["ConsistentRead"]:
            return self.client.get_item(**params)
        row = self._old(params["TableName"], params["Key"])
        return {} if row is None else {"Item": row}

    def batch_get_item(self, RequestItems: dict[str, Any]) -> Any:  # noqa: N803 -- as boto3 names it
        ((table, asked),) = RequestItems.items()
        if asked["ConsistentRead"]:
            return self.client.batch_get_item(RequestItems=RequestItems)
        rows = [self._old(table, key) for key in asked["Keys"]]
        return {"Responses": {table: [row for row in rows if row is not None]}}

    def put_item(self, **params: Any) -> Any:
        return self._written([{"Put": params}], lambda: self.client.put_item(**params))

    def update_item(self, **params: Any) -> Any:
        return self._written([{"Update": params}], lambda: self.client.update_item(**params))

    def transact_write_items(self, **params: Any) -> Any:
        return self._written(params["TransactItems"], lambda: self.client.transact_write_items(**params))

    def _written(self, actions: Any, write: Any) -> Any:
        targets = [next(iter(action.values())) for action in actions]
        keys = [target.get("Key") or {name: target["Item"][name] for name in ("pk", "sk")} for target in targets]
        rows = [self._now(target["TableName"], key) for target, key in zip(targets, keys, strict=True)]
        answer = write()
        self.before |= {str(key): row for key, row in zip(keys, rows, strict=True)}
        return answer

    def _now(self, table: str, key: Any) -> Any:
        return self.client.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")

    def _old(self, table: str, key: Any) -> Any:
        now = self._now(table, key)
        old = self.before.get(str(key), now)
        self.behind[key["sk"]["S"].partition("#")[0]] += old != now
        return old


NAMES = ("long", "short", "fails", "child", "urgent")


def play(world: World) -> dict[str, Any]:
    """Preemption, a failure that is retried, and a job that runs after another; return all that is left of it."""
    for name in NAMES[:2]:
        world.submit(name, training_seconds=900)
    world.submit("fails", training_seconds=60, internal_errors=1)
    child = a_request("child", training_seconds=120)
    child["Tags"].append({"Key": "trainmaster:after", "Value": "short"})
    world.submit_request(child)
    world.run(300, step=1)
    world.submit("urgent", priority=9, training_seconds=300)
    world.run_until_ended(*NAMES)
    jobs = {name: world.job(name) for name in NAMES}
    records = world.api_context.store.read_snapshot().records
    return {"jobs": jobs, "opened": world.opened, "records": records, "doubles": world.doubles}


def test_reads_that_are_always_behind_change_no_outcome():
    with engine() as client:
        make_table(client)
        expected = play(World(client, pools=f"{P5}=2"))
    with engine() as client:
        make_table(client)
        lagging = LaggingReads(client)
        assert play(World(lagging, pools=f"{P5}=2")) == expected
    # Jobs that events concern, the statistics of ended attempts, and requests.
    assert min(lagging.behind[row] for row in ("active", "records", "job")) > 0
    outcomes = {attempt.outcome for job in expected["jobs"].values() for attempt in job.attempts}
    assert outcomes >= {Outcome.COMPLETED, Outcome.PREEMPTED, Outcome.FAILED}
