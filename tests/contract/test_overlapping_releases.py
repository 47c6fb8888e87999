"""An old and a new release work on one table at once, and a rollback to the old one loses nothing.

The newer release knows one attribute of rows and one member of their documents more. It is played by writes of its own,
under the same guards; the older one is the code as it is.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

from engines import DynamoEngine
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from table_fixtures import put_all

import builders as b
from trainmaster.adapters.dynamodb.rows import job_text
from trainmaster.domain.elastic.sizes import Elastic, RestartBudget
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ACTIVE, WAITING, Job
from trainmaster.domain.jobs.observation import Status

NAMES = ("job1", "job2")
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
    "reprioritise": lambda job: lifecycle.reprioritise(job, 1 - job.priority, b.NOW, "ada"),
    "hold": lambda job: lifecycle.hold(job, b.NOW, "ada"),
    "release": lambda job: lifecycle.release(job, b.NOW, "ada"),
    "start": _started,
    "run": _running,
    "preempt": _preempted,
    "end": _ended,
}
"""Changes that the older release makes."""
steps = st.lists(
    st.tuples(st.sampled_from(["new", "settings", *CHANGES]), st.sampled_from(NAMES)), min_size=4, max_size=14
)


class NewRelease:
    """Writes of a release that knows `colour`, a row's attribute, and `mood`, a member of documents."""

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
        put_all(self.engine.client, self.engine.name, [{**row, **changed, "colour": {"N": str(self.count)}}])
        self.wrote[name] = self.count

    def touch_settings(self) -> None:
        self.count += 1
        row = self._row("pools")
        policy, pools = json.loads(row["policy"]["S"]), json.loads(row["pools"]["S"])
        policy["mood"] = policy.setdefault("shares", {}).setdefault("research", {})["mood"] = self.count
        pools[0]["mood"] = self.count
        changed = {"policy": {"S": json.dumps(policy)}, "pools": {"S": json.dumps(pools)}}
        put_all(self.engine.client, self.engine.name, [{**row, **changed, "colour": {"N": str(self.count)}}])
        self.wrote["settings"] = self.count

    def check(self) -> None:
        for name in self.wrote.keys() - {"settings"}:
            row, count = self._job_row(name), self.wrote[name]
            values = json.loads(job_text(row))
            found = (row.get("colour"), values.get("mood"), values["elastic"].get("mood"))
            assert found == ({"N": str(count)}, count, count), name
            assert values["elastic"]["budget"]["mood"] == count
        if "settings" in self.wrote:
            row, count = self._row("pools"), self.wrote["settings"]
            policy = json.loads(row["policy"]["S"])
            pools = [pool.get("mood") for pool in json.loads(row["pools"]["S"])]
            assert (row.get("colour"), policy["mood"], pools) == ({"N": str(count)}, count, [count])
            assert policy["shares"]["research"]["mood"] == count

    def _job_row(self, name: str) -> dict[str, Any]:
        return next(row for row in self.engine.rows() if row.get("jobName") == {"S": name} and "job" in row)

    def _row(self, place: str) -> dict[str, Any]:
        return next(row for row in self.engine.rows() if row["sk"] == {"S": place})


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(steps)
def test_nothing_that_a_newer_release_stored_is_lost(moto_client, steps):
    engine = DynamoEngine(moto_client)
    try:
        _overlap(engine, steps)
    finally:
        moto_client.delete_table(TableName=engine.name)


def _overlap(engine: DynamoEngine, steps: list[tuple[str, str]]) -> None:
    old, new = engine.open(), NewRelease(engine)
    for name in NAMES:
        old.submit(b.a_job(name, elastic=ELASTIC), b.a_request(name))
    old.set_settings(policy=b.a_metered_policy("research"))
    for step, name in steps:
        job = old.find(name)
        assert job is not None
        if step == "new":
            new.touch_job(name)
            new.touch_settings()
            # The older release had read the job before: its change must lose against the newer one's.
            assert not old.transition([(job, replace(job, priority=5, version=job.version + 1))])
        elif step == "settings":
            policy = old.settings().policy
            old.set_settings(
                policy=replace(policy, reservation_timeout=policy.reservation_timeout + timedelta(seconds=1))
            )
        else:
            _change(old, job, step)
        new.check()


def _change(old: Any, job: Job, step: str) -> None:
    try:
        after = CHANGES[step](job)
    except IllegalTransition:
        return
    if after != job:
        assert old.transition([(job, replace(after, version=job.version + 1))])
