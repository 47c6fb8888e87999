"""Every refusal of the API, by route and by type: its status, its field, and the one shape."""

from __future__ import annotations

import base64
import json
import logging
from types import SimpleNamespace

import pytest

from api_world import CONTEXT, ApiWorld, read, rest_event
from builders import G5, P5, a_job, a_request, a_running_job, an_ended_job
from trainmaster.domain import errors
from trainmaster.domain.access.request_policy import RequestPolicy
from trainmaster.handlers.api.app import answer
from trainmaster.handlers.api.errors import STATUS

SECRET = "hunter2-is-a-secret"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
PLAN_FIELD = "pools[0].trainingPlanArn"
WITH_BODY = [("POST", "/add-job"), ("POST", "/plan"), ("PATCH", "/jobs/job1"), ("PUT", "/pools")]
SUBMITTING = ["/add-job", "/plan"]


def a_world():
    made = ApiWorld()
    made.seed(a_job("job1"), an_ended_job("ended"))
    return made


@pytest.fixture
def world():
    return a_world()


# ---------------------------------------------------------------- what a submission may not say


@pytest.mark.parametrize("path", SUBMITTING)
@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        ({}, (400, "InvalidRequest", "TrainingJobName")),
        (a_request("bad name"), (400, "InvalidRequest", "TrainingJobName")),
        (a_request("a-qstamp-2"), (400, "InvalidRequest", "TrainingJobName")),
        (a_request(count="1"), (400, "InvalidRequest", "ResourceConfig.InstanceCount")),
        (a_request(count=0), (400, "InvalidRequest", "ResourceConfig.InstanceCount")),
        (a_request(Nonsense=1), (400, "InvalidRequest", "Nonsense")),
        (a_request(priority="high"), (400, "InvalidRequest", "Tags[0].Value")),
        (a_request(EnableManagedSpotTraining=True), (400, "InvalidRequest", "StoppingCondition.MaxWaitTimeInSeconds")),
        (a_request(options={"preemptable": "true"}), (422, "UnknownOption", "Tags[0].Key")),
        (a_request(options={"preemptible": "yes"}), (400, "InvalidRequest", "Tags[0].Value")),
        (a_request(count=3), (422, "NeverFits", "ResourceConfig")),
        (a_request(instance_type=G5), (422, "NeverFits", "ResourceConfig")),
        (a_request(RoleArn="arn:aws:iam::111122223333:role/admin"), (403, "RoleNotAllowed", "RoleArn")),
        (a_request("job1", priority=9), (409, "NameTaken", "TrainingJobName")),
        ({**a_request(), "\ud800": 1}, (400, "InvalidRequest", "['\\ud800']")),
        (a_request(Environment={"A": "\ud800"}), (400, "InvalidRequest", "Environment.A")),
    ],
)
def test_a_submission_is_refused_with_the_field_at_fault(world, path, request_, kind):
    reply = world.post(path, request_)
    assert reply.kind == kind
    assert reply.error["message"]
    assert reply.error["hint"]
    assert world.publisher.wakes == []
    assert {job["jobName"] for job in world.get("/jobs").body["jobs"]} == {"job1", "ended"}


def test_a_request_that_breaks_the_deployments_policy_is_refused_and_not_stored():
    policy = RequestPolicy(network_isolation=True, buckets=("lab-*",))
    world = ApiWorld(settings={"allowed_roles": ("*",), "request_policy": policy})
    reply = world.post("/add-job", a_request("job1"))
    assert reply.kind == (403, "RequestNotAllowed", "OutputDataConfig.S3OutputPath")
    assert "lab-*" in reply.error["hint"]
    assert world.get("/jobs").body["jobs"] == []


def test_a_job_that_may_not_be_preempted_is_refused_where_the_deployment_says_so():
    world = ApiWorld(settings={"allowed_roles": ("*",), "allow_non_preemptible": False})
    reply = world.post("/add-job", a_request(options={"preemptible": "false"}))
    assert reply.kind == (400, "InvalidRequest", "Tags[0].Value")


# ---------------------------------------------------------------- bodies that cannot be read


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        " ",
        "nonsense",
        "{",
        '{"a": 1,}',
        "\ufeff{}",
        "[]",
        '[{"priority": 1}]',
        "null",
        "true",
        "7",
        '"text"',
        json.dumps(json.dumps(a_request())),
        '{"a": ' + "9" * 5000 + "}",
        '{"priority": 1, "priority": 2}',
        '{"a": [{"b": 1, "b": 1}]}',
        "[" * 100_000,
        '{"a":' * 70 + "1" + "}" * 70,
        "{" + '"a": [' * 1 + "[" * 500 + "]" * 500 + "]}",
    ],
)
def test_a_body_that_is_not_one_json_object_is_refused(world, method, path, body):
    reply = world.event(method, path, body)
    assert reply.kind == (400, "InvalidRequest", None)
    assert reply.error["hint"]


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_is_none_is_refused_by_its_place(world, method, path, number):
    reply = world.event(method, path, f'{{"a": [{number}]}}')
    assert reply.kind == (400, "InvalidRequest", "a[0]")
    assert reply.error["hint"]


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
@pytest.mark.parametrize("body", ["not base64!", "/////w==", base64.b64encode(b'{"a": "\xff"}').decode()])
def test_a_body_that_is_no_text_is_refused(world, method, path, body):
    assert world.event(method, path, body, isBase64Encoded=True).kind == (400, "InvalidRequest", None)


def test_a_body_in_base64_is_read(world):
    body = base64.b64encode(json.dumps(a_request("job2")).encode()).decode()
    assert world.event("POST", "/add-job", body, isBase64Encoded=True).status == 202


def test_a_request_encoded_twice_is_refused_with_the_remedy(world):
    assert "json=job" in world.post("/add-job", json.dumps(json.dumps(a_request()))).error["hint"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
@pytest.mark.parametrize(("method", "path"), WITH_BODY)
def test_a_body_declared_as_something_else_is_refused(world, method, path, kind):
    headers = {"content-type": kind}
    reply = world.event(method, path, a_request(), headers=headers, multiValueHeaders={"content-type": [kind]})
    assert reply.kind == (415, "UnsupportedMediaType", "Content-Type")


@pytest.mark.parametrize("headers", [None, {}, {"content-type": "Application/JSON; charset=utf-8"}])
def test_a_body_declared_loosely_is_read(world, headers):
    many = None if headers is None else {name: [value] for name, value in headers.items()}
    reply = world.event("POST", "/add-job", a_request("job2"), headers=headers, multiValueHeaders=many)
    assert reply.status == 202


@pytest.mark.parametrize("path", ["/jobs", "/jobs/job1", "/queue", "/pools", "/openapi.json"])
def test_a_body_where_none_is_wanted_is_not_looked_at(world, path):
    assert world.event("GET", path, "nonsense").status == 200


# ---------------------------------------------------------------- members and parameters


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PATCH", "/jobs/job1", {}, None),
        ("PATCH", "/jobs/job1", {"priority": None}, None),
        ("PATCH", "/jobs/job1", {"prio": 1}, "prio"),
        ("PATCH", "/jobs/job1", {"a.b": 1}, "['a.b']"),
        ("PATCH", "/jobs/job1", {"priority": "1"}, "priority"),
        ("PATCH", "/jobs/job1", {"priority": 1.0}, "priority"),
        ("PATCH", "/jobs/job1", {"priority": True}, "priority"),
        ("PATCH", "/jobs/job1", {"priority": 1_000_001}, "priority"),
        ("PATCH", "/jobs/job1", {"priority": -1_000_001}, "priority"),
        ("PATCH", "/jobs/job1", {"hold": 1}, "hold"),
        ("PATCH", "/jobs/job1", {"hold": "true"}, "hold"),
        ("PUT", "/pools", {}, "pools"),
        ("PUT", "/pools", {"pools": {}}, "pools"),
        ("PUT", "/pools", {"pools": [1]}, "pools[0]"),
        ("PUT", "/pools", {"pools": [{"cap": 1}]}, "pools[0].instanceType"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5}]}, "pools[0].cap"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": -1}]}, "pools[0].cap"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1_000_001}]}, "pools[0].cap"),
        ("PUT", "/pools", {"pools": [{"instanceType": "p5.48xlarge", "cap": 1}]}, "pools[0].instanceType"),
        ("PUT", "/pools", {"pools": [{"instanceType": f"{P5}\n", "cap": 1}]}, "pools[0].instanceType"),
        ("PUT", "/pools", {"pools": [{"instance_type": P5, "cap": 1}]}, "pools[0].instanceType"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1, "used": 0}]}, "pools[0].used"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1, "countExternal": 0}]}, "pools[0].countExternal"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1}] * 2}, "pools[1].name"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1, "kind": "Spot"}]}, "pools[0].kind"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1, "name": ""}]}, "pools[0].name"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1, "name": "a b"}]}, "pools[0].name"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1, "name": "a" * 64}]}, "pools[0].name"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1, "price": -1}]}, "pools[0].price"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1, "price": "1"}]}, "pools[0].price"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1, "accelerators": 1.5}]}, "pools[0].accelerators"),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1, "kind": "training-plan"}]}, PLAN_FIELD),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1, "trainingPlanArn": PLAN}]}, PLAN_FIELD),
        (
            "PUT",
            "/pools",
            {"pools": [{"instanceType": P5, "cap": 1, "kind": "training-plan", "trainingPlanArn": "arn:aws:x"}]},
            PLAN_FIELD,
        ),
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 1}] * 201}, "pools"),
        ("PUT", "/pools", {"pools": [], "version": "1"}, "version"),
        ("PUT", "/pools", {"pools": [], "version": -1}, "version"),
    ],
)
def test_a_member_of_the_wrong_form_is_named(world, method, path, body, field):
    before = world.get("/pools").body, world.memory.find("job1")
    reply = world.event(method, path, body)
    assert reply.kind == (400, "InvalidRequest", field)
    assert reply.error["message"]
    assert (world.get("/pools").body, world.memory.find("job1")) == before


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("/jobs", {"limit": "0"}, "limit"),
        ("/jobs", {"limit": "101"}, "limit"),
        ("/jobs", {"limit": "many"}, "limit"),
        ("/jobs", {"limit": ["1", "2"]}, "limit"),
        ("/jobs", {"state": "waiting"}, "state"),
        ("/jobs", {"state": "pending,RUNNING"}, "state"),
        ("/jobs", {"state": ["pending", "gone"]}, "state"),
        ("/jobs", {"share": "s" * 257}, "share"),
        ("/jobs", {"pool": "p" * 257}, "pool"),
        ("/jobs", {"cursor": "nonsense"}, "cursor"),
        ("/jobs", {"cursor": "c" * 3000}, "cursor"),
        ("/jobs", {"stat": "pending"}, "stat"),
        ("/queue", {"limit": "-1"}, "limit"),
        ("/queue", {"cursor": "nonsense"}, "cursor"),
        ("/queue", {"cursor": "7.nonsense"}, "cursor"),
        ("/queue", {"cursor": "-1.WyJ3YWl0aW5nIl0"}, "cursor"),
        ("/queue", {"cursor": "٣.WyJ3YWl0aW5nIl0"}, "cursor"),
        ("/queue", {"cursor": "1."}, "cursor"),
        ("/queue", {"state": "pending"}, "state"),
        ("/pools", {"limit": "1"}, "limit"),
    ],
)
def test_a_parameter_of_the_wrong_form_is_named(world, path, query, field):
    reply = world.get(path, **query)
    assert reply.kind == (400, "InvalidRequest", field)
    assert reply.error["message"]


def test_a_misspelt_parameter_is_told_its_right_name(world):
    assert "Did you mean 'limit'?" in world.get("/jobs", limt="7").error["hint"]


def test_a_signature_in_the_query_is_no_parameter(world):
    signature = {"X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Signature": "0a", "limit": "1"}
    assert len(world.get("/jobs", **signature).body["jobs"]) == 1


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
@pytest.mark.parametrize(
    "name", ["job_1", "-job", "job-", "a" * 64, "a%2Fb", "a b", "%00", "a%C3%A9", "job%0A", "é", 'a"b', "#"]
)
def test_a_name_that_no_job_can_have_is_refused(world, method, name):
    reply = world.event(method, f"/jobs/{name}", {"priority": 1} if method == "PATCH" else None)
    assert reply.kind == (400, "InvalidRequest", "name")


@pytest.mark.parametrize("name", ["job1", "%6Aob1", "job%31"])
def test_a_name_is_percent_decoded(world, name):
    assert world.get(f"/jobs/{name}").body["jobName"] == "job1"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
def test_a_job_that_is_not_there_is_not_found(world, method):
    reply = world.event(method, "/jobs/missing", {"priority": 1} if method == "PATCH" else None)
    assert reply.kind == (404, "JobNotFound", "name")


@pytest.mark.parametrize("body", [{"priority": 1}, {"hold": True}, {"hold": False}])
def test_a_job_that_has_ended_cannot_change(world, body):
    assert world.patch("/jobs/ended", body).kind == (409, "IllegalTransition", "jobState")


def test_a_job_that_does_not_wait_cannot_be_held(world):
    world.seed(a_running_job("running"))
    reply = world.patch("/jobs/running", {"hold": True})
    assert reply.kind == (409, "IllegalTransition", "hold")
    assert reply.error["message"] == "Job running is running."
    assert reply.error["hint"] == "Only a waiting job can be held."


def test_a_job_that_is_not_held_cannot_be_released(world):
    assert world.patch("/jobs/job1", {"hold": False}).kind == (409, "IllegalTransition", "hold")


# ---------------------------------------------------------------- routes and methods


@pytest.mark.parametrize("path", ["/", "/add-jobs", "/jobs/a/b", "/jobs/job1/history", "/prod/jobs"])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_an_unknown_route_is_not_found(world, method, path):
    assert world.event(method, path).kind == (404, "RouteNotFound", None)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/add-job", "POST"),
        ("DELETE", "/jobs", "GET"),
        ("POST", "/jobs/job1", "DELETE, GET, PATCH"),
        ("HEAD", "/jobs/job1", "DELETE, GET, PATCH"),
        ("POST", "/queue/", "GET"),
        ("DELETE", "/pools", "GET, PUT"),
        ("OPTIONS", "/plan", "POST"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(world, method, path, allowed):
    reply = world.event(method, path)
    assert reply.kind == (405, "MethodNotAllowed", None)
    assert reply.headers["allow"] == allowed


def test_a_slash_at_the_end_does_no_harm(world):
    assert world.get("/jobs/").body == world.get("/jobs").body


# ---------------------------------------------------------------- when it is not the caller's fault


TROUBLE = {
    errors.Throttled: (429, "Throttled", None),
    errors.Unavailable: (503, "Unavailable", None),
    errors.ServiceError: (503, "ServiceError", None),
    errors.NotPermitted: (503, "ServiceError", None),
    errors.Fenced: (503, "ServiceError", None),
    ValueError: (500, "InternalError", None),
    KeyError: (500, "InternalError", None),
}
READS = [
    ("GET", "/jobs", "list_jobs"),
    ("GET", "/jobs/job1", "find"),
    ("GET", "/jobs/job1", "request_of"),
    ("GET", "/queue", "read_snapshot"),
    ("GET", "/pools", "settings"),
    ("DELETE", "/jobs/job1", "transition"),
    ("PATCH", "/jobs/job1", "transition"),
    ("PUT", "/pools", "set_settings"),
    ("POST", "/plan", "read_snapshot"),
    ("POST", "/add-job", "submit"),
]


@pytest.mark.parametrize("call", READS, ids=" ".join)
@pytest.mark.parametrize("error", TROUBLE)
def test_trouble_is_told_without_its_insides(call, error):
    (method, path, verb), world = call, a_world()
    world.store.failing[verb] = error(SECRET)
    body = {"PATCH": {"priority": 3}, "PUT": {"pools": []}, "POST": a_request("new")}.get(method)
    reply = world.event(method, path, body)
    assert reply.kind == TROUBLE[error]
    assert SECRET not in json.dumps(reply.body)
    assert ("retry-after" in reply.headers) == (reply.status in (429, 503))
    if reply.status != 429:
        assert "0aa1bb2c-request" in reply.error["hint"]


def test_too_large_is_told_with_the_member(world):
    world.store.failing["submit"] = errors.TooLarge("The request is too large for the queue.", field="Environment")
    assert world.post("/add-job", a_request("new")).kind == (413, "TooLarge", "Environment")


def test_every_error_of_the_domain_has_a_status():
    def kinds(base):
        return {base}.union(*(kinds(each) for each in base.__subclasses__()))

    abstract = {errors.TrainmasterError, errors.Refused}
    # The worker's own, which other tests may have imported, never come to an answer.
    for kind in {each for each in kinds(errors.TrainmasterError) if each.__module__ == errors.__name__} - abstract:
        assert any(base in STATUS for base in kind.__mro__), kind


def test_an_application_that_cannot_be_made_is_told_in_the_one_shape(caplog):
    def broken():
        raise errors.InvalidRequest("unknown setting TRAINMASTER_TABEL", field="TRAINMASTER_TABEL")

    with caplog.at_level(logging.INFO):
        reply = read(answer(broken, rest_event("GET", "/jobs"), CONTEXT))
    assert reply.kind == (500, "InternalError", None)
    assert "TABEL" not in json.dumps(reply.body)
    assert any(getattr(record, "text", None) == "unknown setting TRAINMASTER_TABEL" for record in caplog.records)


@pytest.mark.parametrize("event", [{}, {"httpMethod": "GET"}, {"requestContext": None, "path": "/jobs"}])
def test_an_event_that_is_none_of_api_gateways_is_told_in_the_one_shape(world, event):
    assert read(answer(lambda: world.app, event, CONTEXT)).kind == (500, "InternalError", None)


# ---------------------------------------------------------------- secrets


def shown(records):
    return json.dumps([{**vars(record), "made": record.getMessage()} for record in records], default=repr)


@pytest.mark.parametrize("path", SUBMITTING)
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"HyperParameters": {"password": 7, "token": SECRET}},
        {"HyperParameters": {"password": SECRET * 200}},
        {"Environment": {"TOKEN": SECRET * 50}},
        {SECRET: SECRET},
        {"RoleArn": "arn:aws:iam::111122223333:role/other"},
    ],
)
@pytest.mark.parametrize("failing", [None, "read_snapshot"])
def test_no_log_repeats_what_a_request_holds(world, caplog, path, change, failing):
    if failing:
        world.store.failing[failing] = ValueError(f"could not store {SECRET}")
    request = a_request("new", Environment={"TOKEN": SECRET}, HyperParameters={"password": SECRET}) | change
    with caplog.at_level(logging.DEBUG):
        answer(lambda: world.app, rest_event("POST", path, request), SimpleNamespace())
    mentions = [record for record in caplog.records if SECRET in shown([record])]
    # A field that is misnamed is named; a value never is.
    assert SECRET in change or not mentions
    assert any(record.getMessage() == "answered" for record in caplog.records)
