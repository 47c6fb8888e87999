"""The example of `docs/how-to/priorities-for-teams.md` happens as the page says, through the API and the manager."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime, time
from typing import Any

import pytest

from api_world import CONTEXT, Reply, read, rest_event
from builders import P5
from doc_pages import DOCS, Row, plain, section, table
from trainmaster.bootstrap import Application
from trainmaster.handlers.api.app import build_app
from world import BRISK, EPOCH, World, a_request

PAGE = DOCS / "how-to" / "priorities-for-teams.md"
EXAMPLE = section(PAGE, "An example")
SUBMISSIONS = table(EXAMPLE, "at")
ADMIN = "platform-admin"


class Teams(World):
    """The page's queue; `outcomes` has the result of each submission."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        super().__init__(pools=f"{P5}=8", profile=BRISK)
        (settings,) = re.findall(r"```json\n(.*?)```", EXAMPLE, re.DOTALL)
        assert self.call("PUT", "/settings", ADMIN, json.loads(settings)).status == 200

    def application(self) -> Application:
        application = super().application()
        application.settings = replace(application.settings, admins=(f"arn:aws:iam::111122223333:role/{ADMIN}",))
        return application

    def call(self, method: str, path: str, role: str, body: Any = None, **query: str) -> Reply:
        caller = f"arn:aws:sts::111122223333:assumed-role/{role}/session"
        event = rest_event(method, path, body, query, caller=caller)
        return read(build_app(self.application()).resolve(event, CONTEXT))

    def arrive(self, row: Row) -> None:
        """Submit the job of a row at its time, and record what happens to it."""
        at, user, name, share, instances, priority, _ = map(plain, row)
        until = datetime.combine(EPOCH, time.fromisoformat(at), EPOCH.tzinfo)
        if until > self.now():
            self.run((until - self.now()).total_seconds())
        request = a_request(name, priority=int(priority), count=int(instances), training_seconds=80_000)
        request["Tags"].append({"Key": "trainmaster:share", "Value": share})
        reply = self.call("POST", "/add-job", user, request)
        self.settle()
        self.outcomes[name] = self.told(name) if reply.status == 202 else f"refused: {short(reply.error['message'])}"

    def told(self, name: str) -> str:
        """Tell the state of a job in the page's words."""
        victims = [job["jobName"] for job in self.jobs() if job["jobState"] == "preempting"]
        (job,) = [job for job in self.jobs() if job["jobName"] == name]
        if job["jobState"] == "pending" and victims:
            return f"preempts {', '.join(victims)}"
        return "starts" if job["jobState"] == "starting" else message_of(job)

    def jobs(self) -> list[dict[str, Any]]:
        return self.call("GET", "/jobs", ADMIN).body["jobs"]


def message_of(job: dict[str, Any]) -> str:
    return short(job["reason"]["message"]) if job["reason"] else ""


def short(message: str) -> str:
    """Leave the account and the service out of a caller."""
    return message.replace("arn:aws:sts::111122223333:assumed-role/", "")


@pytest.fixture(scope="module")
def teams() -> Teams:
    teams = Teams()
    for row in SUBMISSIONS:
        teams.arrive(row)
    teams.run(20 * 60)
    return teams


def test_each_submission_ends_as_the_page_says(teams):
    wrong = {row[2]: teams.outcomes[row[2]] for row in SUBMISSIONS if not teams.outcomes[row[2]].startswith(row[-1])}
    assert wrong == {}
    assert all(row[-1] for row in SUBMISSIONS)


def test_the_jobs_stand_as_the_page_says_in_the_end(teams):
    rows = table(EXAMPLE, "job at 13:00")
    jobs = {job["jobName"]: job for job in teams.jobs()}
    assert {name: state for name, state, _ in rows} == {name: job["jobState"] for name, job in jobs.items()}
    for name, _, reason in rows:
        assert message_of(jobs[name]).startswith(reason), name
        assert bool(reason) == bool(message_of(jobs[name])), name
