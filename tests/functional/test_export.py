"""Exports of one queue and imports into another: the same order, requests and submitters, or no change at all."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

import boto3
import httpx
import pytest

from api_world import CONTEXT, RESEARCH, ApiWorld, rest_event
from builders import P5, ROLE, a_job, a_request
from cli_terminal import Terminal
from other_kind import BatchWork
from trainmaster.client.api.client import ApiClient
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.ceilings import Ceilings
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.policy.settings import Order, Policy, Share
from trainmaster.service.restoring.export import export_page

ADMIN = "arn:aws:sts::111122223333:assumed-role/admin/ada"
SECRET = {"Environment": {"API_TOKEN": "t0p"}}


def an_old_queue() -> ApiWorld:
    """Jobs of several priorities, one re-prioritized, one held, one after another; a job that has ended."""
    world = ApiWorld(pools={P5: Pool(P5, 4), "spare": Pool("spare", 1, type_=P5)})
    stored = world.memory.settings()
    world.memory.set_settings(policy=Policy(shares={"vision": Share(name="vision")}), version=stored.version)
    for number in range(6):
        world.submit(f"job-{number}", priority=number % 3, options={"share": "vision"}, **SECRET)
    world.patch("/jobs/job-0", {"priority": 9})
    world.patch("/jobs/job-4", {"hold": True})
    world.submit("child", options={"after": "job-1+job-5"})
    world.submit("gone")
    world.delete("/jobs/gone")
    return world


def an_empty_queue(**settings: Any) -> ApiWorld:
    admins = ("arn:aws:iam::111122223333:role/admin",)
    return ApiWorld(pools={P5: Pool(P5, 1)}, settings={"allowed_roles": (ROLE,), "admins": admins} | settings)


def client(world: ApiWorld, caller: str = ADMIN) -> ApiClient:
    """The shipped client, whose requests reach the shipped API."""

    def respond(request: httpx.Request) -> httpx.Response:
        query = dict(parse_qsl(request.url.query.decode()))
        body = request.content.decode() or None
        event = rest_event(request.method, request.url.path, body, query, caller=caller)
        reply = world.app.resolve(event, CONTEXT)
        return httpx.Response(reply["statusCode"], content=reply["body"], headers={"content-type": "application/json"})

    session = boto3.session.Session("AKIA", "secret", region_name="us-east-1")
    return ApiClient("https://queue.example", session=session, transport=httpx.MockTransport(respond), environ={})


def exported(world: ApiWorld) -> dict[str, Any]:
    return json.loads(Terminal(client(world))("export").stdout)


@pytest.fixture
def old() -> ApiWorld:
    return an_old_queue()


@pytest.fixture
def new() -> ApiWorld:
    world = an_empty_queue()
    world.clock.sleep(3_600)
    return world


def imported(world: ApiWorld, document: dict[str, Any], tmp_path, *options: str):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(document))
    return Terminal(client(world))("import", str(path), *options)


def state(world: ApiWorld) -> tuple[Any, ...]:
    now = world.memory.settings()
    return dict(world.memory._table.jobs), now.pools, now.policy, now.version


def names(world: ApiWorld) -> list[str]:
    return [job["jobName"] for job in world.get("/queue").body["jobs"]]


def test_an_import_has_the_same_queue(old, new, tmp_path):
    result = imported(new, exported(old), tmp_path)
    assert result.exit_code == 0, result.output
    assert names(new) == names(old) == ["job-0", "job-2", "job-5", "job-1", "job-3"]
    for name in ("job-0", "job-3", "job-4", "child"):
        before, after = old.memory.find(name), new.memory.find(name)
        same = ("state", "priority", "entry_time", "submitted_by", "held_by", "after", "digest", "demand", "share")
        assert [getattr(after, each) for each in same] == [getattr(before, each) for each in same]
        assert new.memory.request_of(name) == old.memory.request_of(name)
    assert new.memory.find("job-0").submitted_by == RESEARCH
    assert new.memory.find("gone") is None
    assert (new.memory.settings().pools, new.memory.settings().policy) == (
        old.memory.settings().pools,
        old.memory.settings().policy,
    )


def test_an_export_with_the_old_name_of_an_order_is_imported(old, new, tmp_path):
    document = exported(old)
    document["settings"]["order"] = "least-attained-service"
    assert imported(new, document, tmp_path).exit_code == 0
    assert new.memory.settings().policy.order is Order.GITTINS
    again = json.loads(imported(new, document, tmp_path, "--json").stdout)
    assert again["settingsChange"] is False, "both names are one order"


def test_an_import_is_audited_as_that_of_the_admin(old, new, tmp_path):
    imported(new, exported(old), tmp_path)
    entries = new.event("GET", "/audit", query={"job": "job-0"}, caller=ADMIN).body["entries"]
    assert [(each["action"], each["arn"], each["after"]["submittedBy"]) for each in entries] == [
        ("import", ADMIN, RESEARCH)
    ]
    assert new.memory.find("job-0").history[0].reason == f"imported by {ADMIN}"


def test_the_same_import_again_changes_nothing(old, new, tmp_path):
    imported(new, exported(old), tmp_path)
    before = state(new)
    again = json.loads(imported(new, exported(old), tmp_path, "--json").stdout)
    assert {job["outcome"] for job in again["jobs"]} == {"unchanged"}
    assert (again["settingsChange"], again["poolsChange"]) == (False, False)
    assert state(new) == before
    assert exported(new)["jobs"] == exported(old)["jobs"]


def test_a_dry_run_changes_nothing(old, new, tmp_path):
    before = state(new)
    report = imported(new, exported(old), tmp_path, "--dry-run", "--json")
    assert {job["outcome"] for job in json.loads(report.stdout)["jobs"]} == {"new"}
    assert report.exit_code == 0
    assert state(new) == before


def test_all_conflicts_of_all_batches_are_listed_before_anything_changes(old, new, tmp_path):
    submit_many(old)
    for name in ("job-3", "many-29"):
        new.submit(name, StoppingCondition={"MaxRuntimeInSeconds": 60})
    before = state(new)
    result = imported(new, exported(old), tmp_path)
    assert result.exit_code == 4
    listed = [line.split()[:2] for line in result.stdout.splitlines()[2:-1]]
    assert listed == [["job-3", "conflict"], ["many-29", "conflict"]]
    assert "Nothing was changed." in result.stderr
    assert state(new) == before


def test_many_batches_make_the_same_queue(old, new, tmp_path):
    submit_many(old)
    assert imported(new, exported(old), tmp_path).exit_code == 0
    assert names(new) == names(old)
    assert len(names(new)) == 35
    assert new.memory.find("child").after == ("job-1", "job-5")


def submit_many(world: ApiWorld) -> None:
    """Submit more jobs than the client sends in one request."""
    for number in range(30):
        world.submit(f"many-{number}")


def test_jobs_that_would_not_be_admitted_are_refused(old, new, tmp_path):
    document = exported(old)
    document["jobs"][0]["request"]["RoleArn"] = "arn:aws:iam::111122223333:role/another"
    document["jobs"][1]["submittedBy"] = "ada"
    document["jobs"][-1]["after"] = ["nowhere"]
    before = state(new)
    result = imported(new, document, tmp_path, "--json")
    wrong = {job["jobName"]: job["message"] for job in json.loads(result.stdout)["jobs"] if job["outcome"] == "refused"}
    assert list(wrong) == ["job-0", "job-2", "job-4"]
    assert [wrong[name].rpartition("(")[2] for name in wrong] == ["RoleArn)", "submittedBy)", "after)"]
    assert state(new) == before


def test_jobs_only_leaves_settings_and_pools(old, new, tmp_path):
    before = new.memory.settings()
    assert imported(new, exported(old), tmp_path, "--jobs-only").exit_code == 0
    assert new.memory.settings() == before
    assert names(new) == names(old)


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"trainmasterExport": 2}, "trainmasterExport", "reads versions up to 1"),
        ({"trainmasterExport": None}, "trainmasterExport", "no export"),
        ({"jobs": None}, "jobs", "no jobs"),
        ({"pools": {}}, "pools", "no pools"),
        ({"jobs": [{"priority": 1}]}, "jobs[0].request", "no request"),
    ],
)
def test_wrong_documents_are_refused_with_the_field(new, tmp_path, change, field, words):
    result = imported(new, exported(new) | change, tmp_path)
    assert result.exit_code == 2
    assert field in result.stderr
    assert words in result.stderr


def test_a_name_that_occurs_twice_is_refused(old, new, tmp_path):
    document = exported(old)
    result = imported(new, document | {"jobs": [*document["jobs"], document["jobs"][0]]}, tmp_path)
    assert (result.exit_code, "more than one job of the name job-0" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "trainmasterExport"),
        ({"trainmasterExport": 2}, "trainmasterExport"),
        ({"trainmasterExport": 1, "jobs": [{"request": {}, "entryTime": "2026-11-20T12:00:00Z"}]}, "jobs[0].priority"),
        ({"trainmasterExport": 1, "settings": {"order": "any"}}, "settings.order"),
    ],
)
def test_the_api_names_the_field_of_a_wrong_document(new, body, field):
    assert new.post("/import", body, caller=ADMIN).kind == (400, "InvalidRequest", field)


def sent(world: ApiWorld, *jobs: dict[str, Any]) -> dict[str, Any]:
    """The answer of the API to an import of these jobs."""
    made = [{"priority": 1, "entryTime": "2026-11-20T12:00:00Z"} | job for job in jobs]
    reply = world.post("/import", {"trainmasterExport": 1, "jobs": made}, caller=ADMIN)
    assert reply.status == 200, reply.body
    return reply.body


def test_a_job_cannot_enter_in_the_future(new):
    assert sent(new, {"request": a_request("a"), "entryTime": "2099-01-01T00:00:00Z"})["done"] is True
    assert new.memory.find("a").entry_time == new.clock.now()


def test_the_api_stores_no_job_if_another_one_is_above_a_ceiling():
    world = an_empty_queue(ceilings=Ceilings(priority=5))
    answer = sent(world, {"request": a_request("a")}, {"request": a_request("b"), "priority": 6})
    assert ([job["outcome"] for job in answer["jobs"]], answer["done"]) == (["new", "refused"], False)
    assert world.memory.find("a") is None


def test_one_request_cannot_have_two_jobs_of_one_name(new):
    twice = [{"request": a_request("a")}, {"request": a_request("a", priority=3)}]
    assert [job["outcome"] for job in sent(new, *twice)["jobs"]] == ["new", "conflict"]
    assert new.memory.find("a") is None


def test_the_name_of_a_purged_job_is_a_conflict(new):
    new.submit("a")
    new.delete("/jobs/a")
    new.event("DELETE", "/jobs/a", query={"purge": "true"})
    answer = sent(new, {"request": a_request("a")})
    assert ([job["outcome"] for job in answer["jobs"]], answer["done"]) == (["conflict"], False)


def test_pages_end_after_many_characters_and_continue(old):
    context, found, cursor = old.application.api_context, [], None
    while cursor is not None or not found:
        page = export_page(context, Caller(ADMIN), 50, cursor, characters=10)
        assert len(page.jobs) == 1
        found.append(page.jobs[0][0].name)
        cursor = page.cursor
    assert found == [*names(old), "child", "job-4"]


def test_jobs_of_other_kinds_are_skipped_by_name(old):
    old.seed(a_job("other", priority=5, work=BatchWork()))
    document = exported(old)
    assert document["skipped"] == ["other"]
    assert "other" not in [job["request"]["TrainingJobName"] for job in document["jobs"]]


def test_an_export_into_a_file_is_for_its_owner_alone(old, tmp_path):
    path = tmp_path / "queue.json"
    path.write_text("{}")
    path.chmod(0o644)
    result = Terminal(client(old))("export", "--output", str(path))
    assert (result.stdout, path.stat().st_mode & 0o777) == ("", 0o600)
    assert "7 jobs and 2 pools" in result.stderr
    assert json.loads(path.read_text())["jobs"][0]["request"]["Environment"] == SECRET["Environment"]
