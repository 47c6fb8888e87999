"""The OpenAPI document: valid, as the code makes it, of the routes that are deployed and the answers that are given."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import validate
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from api_world import ApiWorld
from builders import (
    G5,
    P5,
    a_held_job,
    a_job,
    a_preempted_job,
    a_preempting_job,
    a_request,
    a_running_job,
    an_ended_job,
)
from doc_pages import describes_all_kinds

ROOT = Path(__file__).parent.parent.parent
COMMITTED = ROOT / "docs" / "reference" / "openapi.json"


@lru_cache
def committed():
    return json.loads(COMMITTED.read_text())


@lru_cache
def validator(path, method, status):
    document = committed()
    answer = document["paths"][path][method.lower()]["responses"][str(status)]
    registry = Registry().with_resource("urn:api", Resource(contents=document, specification=DRAFT202012))
    pointer = "/".join(["#", "paths", path.replace("/", "~1"), method.lower(), "responses", str(status)])
    schema = {"$ref": f"urn:api{pointer}/content/application~1json/schema"}
    assert answer["content"]["application/json"]["schema"]
    return Draft202012Validator(schema, registry=registry, format_checker=FormatChecker())


def test_the_document_is_valid():
    validate(committed())


@describes_all_kinds
@pytest.mark.parametrize("script", ["openapi.py", "client_types.py"])
def test_what_is_committed_is_what_the_code_makes(script):
    run = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), "--check"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_what_is_served_is_what_is_committed_without_other_kinds_of_jobs():
    served = ApiWorld().get("/openapi.json").body
    assert served["paths"] == {path: item for path, item in committed()["paths"].items() if path in served["paths"]}
    schemas = committed()["components"]["schemas"]
    of_kinds = {"Job", "JobDetail", "PlanRequest", "Submission"}
    assert {name for name, schema in served["components"]["schemas"].items() if schemas[name] != schema} == of_kinds
    assert {name: value for name, value in served.items() if name not in {"components", "info", "paths"}} == {
        name: value for name, value in committed().items() if name not in {"components", "info", "paths"}
    }


def test_the_routes_are_those_that_are_deployed():
    """Each route of the document is an event of the API function in the template, and the other way round.

    One event is for the routes of further kinds of jobs.
    """
    template = (ROOT / "template.yaml").read_text()
    pattern = r"RestApiId: !Ref QueueApi, Method: (\w+), Path: \"?([^\s\"]+)\"? \}"
    deployed = {(method, path) for method, path in re.findall(pattern, template)}
    served = ApiWorld().get("/openapi.json").body
    documented = {(method, path) for path, item in served["paths"].items() for method in item}
    assert deployed - documented == {("post", "/{kind}")}
    assert documented - deployed == set()


CALLS = [
    ("POST", "/add-job", "/add-job", a_request("new", priority=9), 202),
    ("POST", "/add-job", "/add-job", a_request("seeded"), 200),
    ("POST", "/add-job", "/add-job", {}, 400),
    ("POST", "/add-job", "/add-job", a_request(RoleArn="arn:aws:iam::111122223333:role/other"), 403),
    ("POST", "/add-job", "/add-job", a_request("seeded", priority=1), 409),
    ("POST", "/add-job", "/add-job", a_request(instance_type=G5), 422),
    ("GET", "/jobs", "/jobs", None, 200),
    ("GET", "/jobs", "/jobs?", {"limit": "0"}, 400),
    ("GET", "/jobs/{name}/rendezvous", "/jobs/seeded/rendezvous", None, 200),
    ("GET", "/jobs/{name}/rendezvous", "/jobs/missing/rendezvous", None, 404),
    ("GET", "/jobs/{name}", "/jobs/preempted", None, 200),
    ("GET", "/jobs/{name}", "/jobs/missing", None, 404),
    ("DELETE", "/jobs/{name}", "/jobs/pending", None, 200),
    ("DELETE", "/jobs/{name}", "/jobs/running", None, 202),
    ("DELETE", "/jobs/{name}", "/jobs/ended", None, 409),
    ("PATCH", "/jobs/{name}", "/jobs/pending", {"priority": 3, "hold": True}, 200),
    ("PATCH", "/jobs/{name}", "/jobs/pending", {"hold": False}, 409),
    ("GET", "/queue", "/queue", None, 200),
    ("GET", "/pools", "/pools", None, 200),
    ("PUT", "/pools", "/pools", {"pools": [{"instanceType": P5, "cap": 1}]}, 200),
    ("PUT", "/pools", "/pools", {"pools": [], "version": 9}, 409),
    ("GET", "/settings", "/settings", None, 200),
    ("PUT", "/settings", "/settings", {}, 200),
    ("PUT", "/settings", "/settings", {"shares": {"vision": {"nominal": {P5: 1}, "budget": {"dollars": 5}}}}, 200),
    ("PUT", "/settings", "/settings", {"order": "lifo"}, 400),
    ("PUT", "/settings", "/settings", {"version": 9}, 409),
    ("POST", "/plan", "/plan", a_request("new", priority=9), 200),
    ("POST", "/plan", "/plan", a_request(count=9), 422),
    ("GET", "/openapi.json", "/openapi.json", None, 200),
]


@pytest.mark.parametrize(("method", "route", "path", "body", "status"), CALLS)
def test_answers_are_as_the_document_says(method, route, path, body, status):
    world = ApiWorld()
    world.submit("seeded")
    world.seed(
        a_job("pending", units={P5: 2}),
        a_running_job("running"),
        a_preempting_job("preempting"),
        a_preempted_job("preempted"),
        a_held_job("held"),
        an_ended_job("ended"),
    )
    query = body if path.endswith("?") else None
    reply = world.event(method, path.rstrip("?"), None if query else body, query)
    assert reply.status == status, reply.body
    problems = list(validator(route, method, status).iter_errors(reply.body))
    assert not problems


def test_answers_have_no_member_that_the_document_does_not_know():
    """Objects are open in the document, so that members may come; today there are none but these."""
    world = ApiWorld()
    world.seed(a_running_job("running"), a_job("pending"))
    schemas = committed()["components"]["schemas"]
    for path, schema in [("/jobs/running", "JobDetail"), ("/jobs/pending", "JobDetail"), ("/queue", "QueuePage")]:
        assert world.get(path).body.keys() == schemas[schema]["properties"].keys()
    (job,) = world.get("/queue").body["jobs"]
    assert job.keys() == schemas["Job"]["properties"].keys()


def test_bodies_that_the_document_refuses_are_refused():
    document = committed()
    for name in (
        "JobChange",
        "PoolSetting",
        "PoolSettings",
        "Settings",
        "PreemptionSettings",
        "LimitsSettings",
        "ShareSettings",
        "BudgetSettings",
        "RetriesSettings",
        "RetrySettings",
    ):
        assert document["components"]["schemas"][name]["additionalProperties"] is False
    assert document["components"]["schemas"]["TrainingJobRequest"]["additionalProperties"] is True


def test_every_operation_is_signed_and_says_how_it_fails():
    document = committed()
    assert document["security"] == [{"sigv4": []}]
    for item in document["paths"].values():
        for operation in item.values():
            refused = [answer for status, answer in operation["responses"].items() if int(status) >= 400]
            assert len(refused) >= 4
            for answer in refused:
                assert answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
