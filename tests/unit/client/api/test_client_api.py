"""The API client: what it sends, how it signs, when it asks again and what its errors say."""

import hashlib
import hmac
import pickle
from collections.abc import Callable
from urllib.parse import quote

import httpx
import pytest
from client_world import API, World, a_session, request_for, transport_to

from trainmaster import ApiClient
from trainmaster.client.api.errors import ApiError, Conflict, Forbidden, NotConfigured, NotFound, Refused, Unreachable

Make = Callable[..., ApiClient]


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _signature(request: httpx.Request, secret: str, region: str, signed: list[str]) -> str:
    """Signature Version 4, written from its specification, over what arrived."""
    path, _, query = request.url.raw_path.decode().partition("?")
    headers = "".join(f"{name}:{request.headers[name].strip()}\n" for name in signed)
    body = hashlib.sha256(request.content).hexdigest()
    parts = [
        request.method,
        quote(path, safe="/~"),
        "&".join(sorted(query.split("&"))),
        headers,
        ";".join(signed),
        body,
    ]
    canonical = "\n".join(parts)
    stamp = request.headers["x-amz-date"]
    scope = f"{stamp[:8]}/{region}/execute-api/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = _hmac(f"AWS4{secret}".encode(), stamp[:8])
    for step in (region, "execute-api", "aws4_request"):
        key = _hmac(key, step)
    return _hmac(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}").hex()


class Recorder(httpx.BaseTransport):
    """Answers by a script and keeps what was sent."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.sent: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        answer = self.answers.pop(0) if self.answers else httpx.Response(200, json={"jobs": [], "nextCursor": None})
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_request_is_submitted_as_it_is_and_answered_with_its_place(api: ApiClient, world: World) -> None:
    request = request_for("job1", HyperParameters={"name": "größer"})

    job = api.submit(request)

    assert (job["jobState"], job["priority"], job["position"]) == ("pending", 7, 1)
    assert job["warnings"] == ["no CheckpointConfig"]
    assert world.jobs["job1"]["jobDetails"] == request


@pytest.mark.parametrize(
    ("call", "sent"),
    [
        (lambda api: api.jobs(), ("GET", "/prod/jobs")),
        (
            lambda api: api.jobs(state=["pending", "held"], cursor="a b+/=&?é"),
            ("GET", "/prod/jobs?state=pending%2Cheld&cursor=a%20b%2B%2F%3D%26%3F%C3%A9"),
        ),
        (lambda api: api.queue(limit=5), ("GET", "/prod/queue?limit=5")),
        (lambda api: api.cancel("job1"), ("DELETE", "/prod/jobs/job1")),
        (lambda api: api.change("job1", priority=0, hold=False), ("PATCH", "/prod/jobs/job1")),
        (lambda api: api.change("job1", min_instances=2, max_instances=8), ("PATCH", "/prod/jobs/job1")),
        (lambda api: api.set_pools([{"instanceType": "ml.m5.large", "cap": 2}]), ("PUT", "/prod/pools")),
        (lambda api: api.settings(), ("GET", "/prod/settings")),
        (lambda api: api.set_settings({"order": "fifo"}), ("PUT", "/prod/settings")),
        (lambda api: api.openapi(), ("GET", "/prod/openapi.json")),
        (lambda api: api.plan({"TrainingJobName": "x"}), ("POST", "/prod/plan")),
    ],
)
def test_every_call_is_signed_for_what_is_sent(call, sent, client_on: Make) -> None:
    recorder = Recorder()
    client = client_on(recorder, session=a_session("eu-west-1", token="session-token"), api_id="a1b2c3")

    call(client)

    (request,) = recorder.sent
    assert (request.method, request.url.raw_path.decode()) == sent
    authorization = dict(part.split("=", 1) for part in request.headers["authorization"].partition(" ")[2].split(", "))
    signed = authorization["SignedHeaders"].split(";")
    assert {"host", "x-amz-date", "x-apigw-api-id", "x-amz-security-token"} <= set(signed)
    # The host name tells the API's Region, whatever the session's is.
    assert authorization["Signature"] == _signature(request, "wJalrXUtnFEMI", "us-east-1", signed)
    assert request.headers["x-apigw-api-id"] == "a1b2c3"


def test_the_session_tells_the_region_where_the_host_does_not(client_on: Make) -> None:
    recorder = Recorder()
    client_on(
        recorder, url="http://127.0.0.1:4566/restapis/x/prod/_user_request_/", session=a_session("eu-west-1")
    ).jobs()

    (request,) = recorder.sent
    assert request.url.path == "/restapis/x/prod/_user_request_/jobs"
    assert "/eu-west-1/execute-api/aws4_request" in request.headers["authorization"]


def test_without_credentials_or_region_it_says_what_is_missing(client_on: Make) -> None:
    import boto3

    with pytest.raises(Forbidden, match="Log in"):
        client_on(Recorder(), session=boto3.session.Session(region_name="us-east-1")).jobs()
    with pytest.raises(NotConfigured, match="AWS_DEFAULT_REGION"):
        client_on(Recorder(), url="https://queue.example/prod", session=a_session(None)).jobs()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Refused),
        (403, Forbidden),
        (404, Unreachable),
        (409, Conflict),
        (413, Refused),
        (422, Refused),
        (500, Unreachable),
    ],
)
def test_an_error_keeps_all_that_the_api_said(status: int, kind: type[ApiError], client_on: Make) -> None:
    error = {"type": "NeverFits", "message": "3 of 2", "field": "ResourceConfig", "hint": "Ask for 2."}
    recorder = Recorder(*[httpx.Response(status, json={"error": error})] * 3)

    with pytest.raises(ApiError) as caught:
        client_on(recorder).submit(request_for("job1"))

    assert type(caught.value) is kind
    found = pickle.loads(pickle.dumps(caught.value))
    assert (found.type, found.message, found.field, found.hint, found.status) == (*error.values(), status)
    assert str(found) == "NeverFits: 3 of 2 (field ResourceConfig) Ask for 2."


def test_only_a_missing_job_is_not_found(api: ApiClient, client_on: Make) -> None:
    with pytest.raises(NotFound, match="JobNotFound: no job missing"):
        api.job("missing")
    missing = httpx.Response(404, json={"error": {"type": "RouteNotFound", "message": "There is no such route."}})
    with pytest.raises(Unreachable, match="RouteNotFound"):
        client_on(Recorder(missing)).job("job1")


@pytest.mark.parametrize(
    ("answer", "kind", "hint"),
    [
        (httpx.Response(403, json={"message": "Missing Authentication Token"}), Unreachable, "with its stage"),
        (httpx.Response(403, json={"Message": "User is not authorized"}), Forbidden, "execute-api:Invoke"),
        (httpx.Response(404, html="<p>nothing here"), Unreachable, "stack output ApiUrl"),
        (httpx.Response(200, html="<p>welcome"), Unreachable, "stack output ApiUrl"),
        (httpx.Response(200, json={"name": "shop", "version": 3}), Unreachable, "does not answer as Trainmaster"),
        (httpx.Response(200, json=[]), Unreachable, "does not answer as Trainmaster"),
        (
            httpx.Response(403, json={"message": "The security token is expired"}),
            Forbidden,
            "Log in",
        ),
        (httpx.Response(413, json={"message": "Request Too Long"}), Refused, "Shorten"),
    ],
)
def test_responses_from_other_servers_are_distinguished(answer, kind, hint: str, client_on: Make) -> None:
    with pytest.raises(kind, match=hint):
        client_on(Recorder(answer)).job("job1")


def test_it_retries_after_a_growing_pause_with_a_new_signature(client_on: Make, slept: list[float]) -> None:
    recorder = Recorder(httpx.ConnectError("refused"), httpx.Response(429, headers={"retry-after": "3"}))

    client_on(recorder).jobs()

    assert len(recorder.sent) == 3
    assert all("authorization" in request.headers for request in recorder.sent)
    assert 0 <= slept[0] <= 0.25
    assert slept[1] == 3.0


def test_it_gives_up_after_all_tries_and_says_where_to_look(client_on: Make, slept: list[float]) -> None:
    with pytest.raises(Unreachable, match=r"throttled.*alarms and logs"):
        client_on(Recorder(*[httpx.Response(429, json={"message": "throttled"})] * 3)).jobs()
    with pytest.raises(Unreachable, match=r"no route.*from its VPC"):
        client_on(Recorder(*[httpx.ConnectTimeout("no route")] * 3)).jobs()
    assert len(slept) == 4


def test_a_refusal_is_not_asked_again(client_on: Make) -> None:
    recorder = Recorder(httpx.Response(422, json={"error": {"type": "NeverFits", "message": "no"}}))
    with pytest.raises(Refused):
        client_on(recorder).submit(request_for("job1"))
    assert len(recorder.sent) == 1


def test_a_change_whose_answer_was_lost_is_no_conflict(api: ApiClient, world: World) -> None:
    api.submit(request_for("job1"))
    api.submit(request_for("job2"))

    world.lose_answers = 1
    assert api.change("job2", hold=True)["jobState"] == "held"
    world.lose_answers = 1
    assert api.cancel("job1")["jobState"] == "cancelled"
    with pytest.raises(Conflict, match="has ended"):
        api.cancel("job1")


def test_jobs_and_queue_are_read_page_by_page(api: ApiClient, world: World) -> None:
    for number in range(5):
        api.submit(request_for(f"job{number}"))
    api.cancel("job3")

    assert [job["jobName"] for job in api.all_jobs()] == ["job0", "job1", "job2", "job4", "job3"]
    assert [job["jobName"] for job in api.all_jobs("cancelled")] == ["job3"]
    assert [job["jobName"] for job in api.all_queued()] == ["job0", "job1", "job2", "job4"]
    assert world.count("GET", "/queue") == 2


def test_settings_are_replaced_only_at_the_version_that_was_read(api: ApiClient) -> None:
    settings = api.settings()
    assert api.set_settings({**settings, "order": "fifo"})["order"] == "fifo"
    with pytest.raises(Conflict) as refusal:
        api.set_settings({**settings, "order": "fair"})
    assert refusal.value.type == "VersionConflict"
    with pytest.raises(Refused) as wrong:
        api.set_settings({"order": "lifo"})
    assert wrong.value.field == "order"
    assert api.settings()["order"] == "fifo"


def test_pools_are_replaced_only_at_the_version_that_was_read(api: ApiClient) -> None:
    version = api.pools()["version"]
    assert api.set_pools([{"instanceType": "ml.m5.large", "cap": 3}], version)["version"] == version + 1
    with pytest.raises(Conflict, match="VersionConflict"):
        api.set_pools([], version)


def test_a_closed_client_opens_again(world: World, client_on: Make) -> None:
    with client_on(transport_to(world), url=f"{API}/") as client:
        assert client.openapi() == {"openapi": "3.1.0"}
    assert client.plan(request_for("job1"))["decision"] == "wait"
    assert world.jobs == {}
