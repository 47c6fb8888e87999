"""Releases overlap on one table, and are rolled back: nothing that any of them stored is lost.

The present release is the code as it is. The additive one has the same schema, and knows one attribute of rows and one
member of their documents more; it is played by writes of its own, under the same guards. The next one is the code with
a newer schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from engines import DynamoEngine
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from table_fixtures import put_all

import builders as b
from samples import sample
from trainmaster.adapters.dynamodb.control.schema import SCHEMA, Schema, version_of
from trainmaster.adapters.dynamodb.rows import job_text
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.elastic.sizes import Elastic, RestartBudget
from trainmaster.domain.errors import Fenced, IllegalTransition, UnsupportedSchema
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ACTIVE, WAITING, Job
from trainmaster.domain.jobs.observation import Status

NAMES = ("job1", "job2")
names = st.sampled_from((*NAMES, "job3"))
ELASTIC = Elastic(min_instances=1, max_instances=4, budget=RestartBudget(max_restarts=3))


def _started(job: Job) -> Job:
    return lifecycle.start(job, {b.P5: 1}, (), b.NOW) if job.state in WAITING else job


def _running(job: Job) -> Job:
    seen = b.an_observation(job, secondary="Training", started_at=b.NOW)
    return (lifecycle.observe(job, seen, b.NOW) or job) if job.units else job


def _preempted(job: Job) -> Job:
    asked = lifecycle.preempt(job, "other", b.NOW) if job.state in ACTIVE and not job.stopping else job
    return (
        (lifecycle.observe(asked, b.an_observation(asked, status=Status.STOPPED), b.NOW) or job) if job.units else job
    )


def _ended(job: Job) -> Job:
    return (lifecycle.observe(job, b.an_observation(job, status=Status.COMPLETED), b.NOW) or job) if job.units else job


CHANGES = {
    "reprioritize": lambda job: lifecycle.reprioritize(job, 1 - job.priority, b.NOW, "ada"),
    "hold": lambda job: lifecycle.hold(job, b.NOW, "ada"),
    "release": lambda job: lifecycle.release(job, b.NOW, "ada"),
    "start": _started,
    "run": _running,
    "preempt": _preempted,
    "end": _ended,
}
"""Changes that managers and people make."""


class AdditiveRelease:
    """Writes of a release that knows `color`, a row's attribute, and `mood`, a member of documents."""

    def __init__(self, engine: DynamoEngine) -> None:
        self.engine, self.wrote = engine, dict[str, int]()
        self.count = 0

    def touch_job(self, name: str) -> None:
        self.count += 1
        row = self._job_row(name)
        values = json.loads(job_text(row))
        values["mood"] = values["elastic"]["mood"] = values["elastic"]["budget"]["mood"] = self.count
        if "attempt" in values:
            values["attempt"]["mood"] = self.count
        changed = {"job": {"S": json.dumps(values)}, "version": {"N": str(int(row["version"]["N"]) + 1)}}
        put_all(self.engine.client, self.engine.name, [{**row, **changed, "color": {"N": str(self.count)}}])
        self.wrote[name] = self.count

    def touch_settings(self) -> None:
        self.count += 1
        row = self._row("pools")
        policy, pools = json.loads(row["policy"]["S"]), json.loads(row["pools"]["S"])
        policy["mood"] = policy.setdefault("shares", {}).setdefault("research", {})["mood"] = self.count
        pools[0]["mood"] = self.count
        changed = {"policy": {"S": json.dumps(policy)}, "pools": {"S": json.dumps(pools)}}
        put_all(self.engine.client, self.engine.name, [{**row, **changed, "color": {"N": str(self.count)}}])
        self.wrote["settings"] = self.count

    def check(self) -> None:
        for name in self.wrote.keys() - {"settings"}:
            row, count = self._job_row(name), self.wrote[name]
            values = json.loads(job_text(row))
            found = (row.get("color"), values.get("mood"), values["elastic"].get("mood"))
            assert found == ({"N": str(count)}, count, count), name
            assert values["elastic"]["budget"]["mood"] == count
        if "settings" in self.wrote:
            row, count = self._row("pools"), self.wrote["settings"]
            policy = json.loads(row["policy"]["S"])
            pools = [pool.get("mood") for pool in json.loads(row["pools"]["S"])]
            assert (row.get("color"), policy["mood"], pools) == ({"N": str(count)}, count, [count])
            assert policy["shares"]["research"]["mood"] == count

    def _job_row(self, name: str) -> dict[str, Any]:
        return next(row for row in self.engine.rows() if row.get("jobName") == {"S": name} and "job" in row)

    def _row(self, place: str) -> dict[str, Any]:
        return next(row for row in self.engine.rows() if row["sk"] == {"S": place})


NEXT = Schema(SCHEMA.version + 1, {**SCHEMA.migrations, SCHEMA.version: lambda row: row})


class Releases(RuleBasedStateMachine):
    """Managers of three releases on one table, in any order, with rollbacks from one to another.

    `model` has each job as the newest release reads it after the last committed change.
    """

    def __init__(self, client: Any) -> None:
        super().__init__()
        self.engine = DynamoEngine(client)
        self.present: Any = self.engine.open()
        self.next: Any = self.engine.stores(
            Table(client, self.engine.name, lambda _: None, schema=NEXT),
            default_pools=b.pools_of(b.a_pool()),
            parameter="two",
            now=lambda: b.NOW,
        )
        self.additive = AdditiveRelease(self.engine)
        self.model: dict[str, Job] = {}
        self.present.set_settings(policy=b.a_metered_policy("research"))
        for name in NAMES:
            self.submit(name, newer=False)

    def teardown(self) -> None:
        self.engine.client.delete_table(TableName=self.engine.name)

    # -- what of the table is newer than the present release

    def schemas(self, where: Callable[[dict[str, Any]], bool] = lambda row: True) -> set[int]:
        return {version_of(row) for row in self.engine.rows() if where(row)}

    def is_newer(self, name: str) -> bool:
        """Return whether a newer release wrote one of the job's rows."""
        own = {f"JOB#{name}", name}
        rows = self.schemas(lambda row: bool({row["pk"]["S"], row.get("jobName", {}).get("S")} & own))
        return NEXT.version in rows

    def has_newer(self, place: str) -> bool:
        return NEXT.version in self.schemas(lambda row: row["sk"]["S"] == place)

    def by_present(self, call: Callable[[Any], Any]) -> Any:
        """Return the result, or UnsupportedSchema if a newer row stops the present release, and nothing changes."""
        before = self.engine.rows()
        try:
            return call(self.present)
        except UnsupportedSchema as error:
            refusal = str(error)
        assert f"schema {NEXT.version}" in refusal
        assert NEXT.version in self.schemas(), "refused without a newer row"
        assert self.engine.rows() == before
        return UnsupportedSchema

    # -- what the releases do

    @rule(name=names, newer=st.booleans())
    def submit(self, name: str, newer: bool) -> None:
        if name not in self.model:
            store = self.next if newer else self.present
            store.submit(b.a_job(name, elastic=ELASTIC), b.a_request(name))
            self.model[name] = self.next.find(name)

    @precondition(lambda self: self.model)
    @rule(name=names, change=st.sampled_from(sorted(CHANGES)), newer=st.booleans())
    def change(self, name: str, change: str, newer: bool) -> None:
        before = self.model.get(name)
        if before is None:
            return
        try:
            after = CHANGES[change](before)
        except IllegalTransition:
            return
        if after == before:
            return
        after = replace(after, version=before.version + 1)
        if newer:
            won = self.next.transition([(before, after)])
        else:
            if self.is_newer(name):
                assert self.by_present(lambda store: store.find(name)) is UnsupportedSchema
                return
            won = self.by_present(lambda store: store.transition([(store.find(name), after)]))
        assert won in {True, UnsupportedSchema}
        if won is True:
            self.model[name] = self.next.find(name)
            assert (self.model[name].state, self.model[name].priority) == (after.state, after.priority)

    @rule(name=names)
    def add_attributes(self, name: str) -> None:
        """The additive release changes a job that another manager has just read, whose own change then loses."""
        if name not in self.model or self.is_newer(name):
            return
        read = self.present.find(name)
        self.additive.touch_job(name)
        lost = replace(read, priority=5, version=read.version + 1)
        assert not self.present.transition([(read, lost)])
        self.model[name] = self.next.find(name)
        assert (self.model[name].state, self.model[name].priority) == (read.state, read.priority)

    @rule(newer=st.sampled_from(["present", "additive", "next"]))
    def change_settings(self, newer: str) -> None:
        if newer == "additive" and not self.has_newer("pools"):
            self.additive.touch_settings()
            return
        policy = self.next.settings().policy
        changed = replace(policy, reservation_timeout=policy.reservation_timeout + timedelta(seconds=1))
        if newer == "next":
            self.next.set_settings(policy=changed)
        elif self.by_present(lambda store: store.set_settings(policy=changed)) is UnsupportedSchema:
            assert self.has_newer("pools") or self.has_newer("control")
            return
        assert self.next.settings().policy.reservation_timeout == changed.reservation_timeout

    @rule(newer=st.booleans())
    def pass_begins(self, newer: bool) -> None:
        """A pass of the next release marks the table: the present one begins none any more."""
        number = self.next.current_pass()
        if newer:
            assert self.next.begin_pass().pass_number > number
            assert self.has_newer("control")
        elif self.has_newer("control"):
            assert self.by_present(lambda store: store.begin_pass()) is UnsupportedSchema
        elif NEXT.version not in self.schemas():
            assert self.present.begin_pass().pass_number > number

    @precondition(lambda self: self.model)
    @rule(name=names, newer=st.booleans())
    def a_fenced_pass_changes_nothing(self, name: str, newer: bool) -> None:
        """A manager of one release is overtaken by the next one's, in the middle of its pass."""
        if name not in self.model or (not newer and NEXT.version in self.schemas()):
            return
        store, job = (self.next if newer else self.present), self.model[name]
        number = store.begin_pass().pass_number
        self.next.begin_pass()
        before = self.engine.rows()
        with pytest.raises(Fenced):
            store.transition([(job, replace(job, priority=9, version=job.version + 1))], fence=number)
        assert self.engine.rows() == before

    @rule()
    def roll_back(self) -> None:
        """New processes of the present release: they read all that is not newer, and refuse the rest by name."""
        self.present = self.engine.open()
        for name, job in self.model.items():
            found = self.by_present(lambda store, name=name: store.find(name))
            assert found == (UnsupportedSchema if self.is_newer(name) else job)

    # -- what holds always

    @invariant()
    def nothing_is_lost(self) -> None:
        self.additive.check()
        assert {name: self.next.find(name) for name in self.model} == self.model
        assert all(self.next.request_of(name) == b.a_request(name) for name in self.model)


def overlap(client: Any, examples: int) -> None:
    run_state_machine_as_test(
        lambda: Releases(client),
        settings=settings(
            max_examples=examples,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        ),
    )


@pytest.mark.parametrize("examples", sample([1, 2]))
def test_nothing_that_any_release_stored_is_lost_in_memory(moto_client, examples):
    overlap(moto_client, examples)


def test_nothing_that_any_release_stored_is_lost_on_the_engine(dynoxide_client):
    overlap(dynoxide_client, 4)


@pytest.mark.slow
def test_nothing_that_any_release_stored_is_lost_in_long_overlaps(dynoxide_client):
    overlap(dynoxide_client, 150)
