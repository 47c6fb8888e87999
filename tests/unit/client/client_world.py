"""A queue and a SageMaker in memory, for the clients' tests: scripted, not scheduled.

The test says when a job starts, is preempted or ends (`start`, `preempt`, `settle`, `end`). `World.handle` speaks both
the queue's API (paths under /prod) and SageMaker's JSON protocol, so that it can stand behind an httpx transport or a
real HTTP server. It imports nothing of Trainmaster: it is an independent reading of the API's contract.
"""

from __future__ import annotations

import copy
import functools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import boto3
import httpx
from botocore import xform_name

from aws_clients import aws_session

API = "https://a1b2c3.execute-api.us-east-1.amazonaws.com/prod"
ACCOUNT = "123456789012"
REGION = "us-east-1"
PATIENCE_SECONDS = 240.0
"""Time after which a call that was expected has not come; a loaded machine is slow."""
ROLE = f"arn:aws:iam::{ACCOUNT}:role/trainer"
WAITING = ("pending", "preempted", "held")
ENDED = ("completed", "failed", "stopped", "cancelled")
IAM_DENIES = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
Reply = tuple[int, dict[str, Any]]


def request_for(name: str, **changes: Any) -> dict[str, Any]:
    """A CreateTrainingJob request that botocore accepts."""
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": "image", "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "Tags": [{"Key": "priority", "Value": "7"}],
    } | changes


class Refusal(Exception):
    """An answer that is an error: status and body."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(str(body))
        self.reply: Reply = (status, body)


def refuse(status: int, kind: str, message: str, field: str | None = None, hint: str | None = None) -> Refusal:
    """An error of the queue's API."""
    return Refusal(status, {"error": {"type": kind, "message": message, "field": field, "hint": hint}})


def sagemaker_error(code: str, message: str) -> Refusal:
    """An error of SageMaker's."""
    return Refusal(400, {"__type": code, "message": message})


def at_once(act: Callable[..., Any]) -> Callable[..., Any]:
    """Let no request see the world in the middle of the act."""

    @functools.wraps(act)
    def locked(self: World, *arguments: Any, **named: Any) -> Any:
        with self.lock:
            return act(self, *arguments, **named)

    return locked


class World:
    """Both services' state, and the ways to move it on."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.trainings: dict[str, dict[str, Any]] = {}
        self.pipelines: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.outage: list[int] = []
        self.lose_answers = 0
        self.pools: dict[str, Any] = {"pools": [], "version": 1}
        self.settings: dict[str, Any] = {"order": "backfill", "preemption": {}, "version": 1}
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)

    # -- what the test does

    @at_once
    def start(self, name: str, *, heard_by_sagemaker: bool = True) -> str:
        """Begin the job's next attempt; returns its name."""
        job = self.jobs[name]
        number = len(job["attempts"]) + 1
        attempt = name if number == 1 else f"{name}-qstamp-{number}"
        times = {"createdAt": _iso(), "startedAt": _iso(), "endedAt": None}
        job["attempts"].append(
            {
                "number": number,
                "trainingJobName": attempt,
                "units": {"ml.m5.large": 1},
                "instanceType": None,
                "launched": heard_by_sagemaker,
                "outcome": "active",
                "reason": None,
            }
            | times
        )
        job |= {"trainingJobName": attempt, "jobState": "starting", "position": None, "reason": None}
        if heard_by_sagemaker:
            self.train(job["jobDetails"] | {"TrainingJobName": attempt})
            job["jobState"] = "running"
        return attempt

    @at_once
    def preempt(self, name: str) -> None:
        """Ask for the stop of the running attempt, to resume later."""
        job = self.jobs[name]
        job["jobState"] = "preempting"
        self.tell(job["trainingJobName"], "Stopping", "Stopping", "Stopping the training job")

    @at_once
    def settle(self, name: str, *, queue_noticed: bool = True) -> None:
        """The preempted attempt has stopped."""
        job = self.jobs[name]
        self.tell(job["trainingJobName"], "Stopped", "Stopped", "Training job stopped")
        if queue_noticed:
            job["attempts"][-1] |= {"outcome": "preempted", "endedAt": _iso()}
            job |= {
                "jobState": "preempted",
                "position": 1,
                "reason": _reason("WaitsForCapacity", "no free ml.m5.large"),
            }

    @at_once
    def lose_base(self, name: str, member: str) -> None:
        """SageMaker loses the running attempt's base, and a member of the same attempt takes its place."""
        job = self.jobs[name]
        lost = {"FailureReason": "InternalServerError: sorry"}
        self.tell(job["trainingJobName"], "Failed", "Failed", "Training job failed", lost)
        self.train(job["jobDetails"] | {"TrainingJobName": member})
        job["trainingJobName"] = member

    @at_once
    def end(self, name: str, status: str = "Completed", reason: str | None = None) -> None:
        """The running attempt ends, and the job with it."""
        job = self.jobs[name]
        artifact = {"S3ModelArtifacts": f"s3://bucket/out/{job['trainingJobName']}/output/model.tar.gz"}
        extra: dict[str, Any] = (
            {"ModelArtifacts": artifact} if status == "Completed" else {"FailureReason": reason or ""}
        )
        self.tell(job["trainingJobName"], status, status, f"Training job {status.lower()}", extra)
        job["attempts"][-1] |= {"outcome": status.lower(), "endedAt": _iso()}
        job |= {"jobState": status.lower(), "failureReason": reason}

    def train(self, request: dict[str, Any]) -> dict[str, Any]:
        """Act as SageMaker on a CreateTrainingJob request."""
        name = request["TrainingJobName"]
        if name in self.trainings:
            raise sagemaker_error("ResourceInUse", f"Training job names must be unique: {name}")
        arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{name}"
        now = time.time()
        told = {"TrainingJobArn": arn, "CreationTime": now, "TrainingStartTime": now}
        self.trainings[name] = _filled(request) | told | {"ModelArtifacts": {"S3ModelArtifacts": ""}}
        self.tell(name, "InProgress", "Training", "Training in progress")
        return {"TrainingJobArn": arn}

    def tell(
        self, name: str, status: str, secondary: str, message: str, extra: Mapping[str, Any] | None = None
    ) -> None:
        """Change what SageMaker tells of a training job."""
        with self.changed:
            job = self.trainings[name]
            transition = {"Status": secondary, "StartTime": time.time(), "StatusMessage": message}
            job["SecondaryStatusTransitions"] = [*job.get("SecondaryStatusTransitions", []), transition]
            job |= {"TrainingJobStatus": status, "SecondaryStatus": secondary, "LastModifiedTime": time.time()}
            if status in ("Completed", "Failed", "Stopped"):
                job["TrainingEndTime"] = time.time()
            job |= dict(extra or {})
            self.changed.notify_all()

    def count(self, method: str, path: str) -> int:
        """Count the calls of a route."""
        return self.calls.count((method, path))

    def await_calls(self, method: str, path: str, times: int, seconds: float = PATIENCE_SECONDS) -> None:
        """Block until it was called so often; fails after so many seconds."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.count(method, path) >= times, seconds):
                raise AssertionError(f"{method} {path} was called {self.count(method, path)} times: {self.calls}")

    # -- the two services

    def handle(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer one HTTP request to either service, with a copy: a test that awaits the call may change the world."""
        lower = {key.lower(): value for key, value in headers.items()}
        url = urlsplit(target)
        with self.changed:
            operation = lower.get("x-amz-target", "").partition(".")[2]
            self.calls.append((method, operation or url.path.removeprefix("/prod")))
            self.headers.append(lower)
            self.changed.notify_all()
            try:
                if operation:
                    return 200, copy.deepcopy(getattr(self, f"sagemaker_{xform_name(operation)}")(json.loads(body)))
                return copy.deepcopy(self._queue(method, url.path, parse_qs(url.query), lower, body))
            except Refusal as refusal:
                return refusal.reply

    def _queue(
        self, method: str, path: str, query: dict[str, list[str]], headers: dict[str, str], body: bytes
    ) -> Reply:
        if "execute-api" not in headers.get("authorization", "") or not path.startswith("/prod"):
            return 403, {"message": "Missing Authentication Token"}
        if self.outage:
            return self.outage.pop(0), {"message": "outage"}
        parts = path.removeprefix("/prod/").split("/")
        route = getattr(self, f"{method.lower()}_{parts[0].replace('-', '_').replace('.', '_')}")
        argument = unquote(parts[1]) if len(parts) > 1 else None
        reply: Reply = route(argument, query, json.loads(body) if body else None)
        if self.lose_answers:
            self.lose_answers -= 1
            return 504, {"message": "Endpoint request timed out"}
        return reply

    def post_add_job(self, _: None, __: object, request: dict[str, Any]) -> Reply:
        name = request["TrainingJobName"]
        old = self.jobs.get(name)
        if old and old["jobDetails"] != request:
            raise refuse(409, "NameTaken", f"{name} was submitted with another request", "TrainingJobName")
        self._check(request)
        if not old:
            self.jobs[name] = self._new_job(name, request)
        return (200 if old else 202), self.jobs[name] | {
            "submittedBefore": old is not None,
            "warnings": ["no CheckpointConfig"],
            "wouldPreempt": [other for other in self.jobs if other.startswith("victim") and other != name],
        }

    def _check(self, request: dict[str, Any]) -> None:
        if request["RoleArn"] != ROLE:
            raise refuse(403, "RoleNotAllowed", "not this role", "RoleArn", "Use a role of the list.")
        if request.get("ResourceConfig", {}).get("InstanceCount", 1) > 99:
            raise refuse(422, "NeverFits", "the pool has 99", "ResourceConfig.InstanceCount", "Ask for fewer.")

    def _new_job(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
        waiting = sum(job["jobState"] in WAITING for job in self.jobs.values())
        return {
            "jobName": name,
            "jobState": "pending",
            "priority": int(tags.get("priority", "0")),
            "share": tags.get("trainmaster:share", "default"),
            "entryTime": _iso(),
            "pools": ["ml.m5.large"],
            "demand": [{"ml.m5.large": 1}],
            "preemptible": True,
            "position": waiting + 1,
            "positionAtLeast": None,
            "reason": _reason("WaitsForCapacity", "no free ml.m5.large"),
            "estimatedStart": "2030-01-01T12:00:00Z",
            "endedAt": None,
            "submittedBy": None,
            "failureReason": None,
            "trainingJobName": None,
            "attempts": [],
            "jobDetails": request,
            "redacted": [],
            "history": [{"at": _iso(), "from": None, "to": "pending", "reason": None, "attempt": None}],
        }

    def get_jobs(self, name: str | None, query: dict[str, list[str]], _: None) -> Reply:
        if name is not None:
            return 200, self._job(name)
        wanted = query.get("state", [",".join({job["jobState"] for job in self.jobs.values()})])[0].split(",")
        found = [job for job in self.jobs.values() if job["jobState"] in wanted]
        found.sort(key=_ended_at, reverse=True)
        first = int(query.get("cursor", ["0"])[0].removeprefix("after +/="))
        after = first + int(query.get("limit", ["2"])[0])
        return 200, {
            "jobs": found[first:after],
            "nextCursor": f"after +/={after}" if after < len(found) else None,
        }

    def delete_jobs(self, name: str, query: dict[str, list[str]], __: None) -> Reply:
        job = self._job(name)
        if query.get("purge") == ["true"]:
            if job["jobState"] not in ENDED:
                raise refuse(409, "IllegalTransition", f"{name} has not ended")
            return 200, self.jobs.pop(name)
        if job["jobState"] in ENDED:
            raise refuse(409, "IllegalTransition", f"{name} has ended: {job['jobState']}")
        reason = "".join(f": {each}" for each in query.get("reason", ()))
        if job["jobState"] in WAITING:
            job |= {"jobState": "cancelled", "position": None}
            job["history"].append({**job["history"][-1], "to": "cancelled", "reason": f"cancelled by ann{reason}"})
            return 200, job
        self.tell(job["trainingJobName"], "Stopping", "Stopping", "Stopping the training job")
        return 202, job

    def patch_jobs(self, name: str, _: object, change: dict[str, Any]) -> Reply:
        job = self._job(name)
        if "hold" in change:
            if (job["jobState"] == "held") == change["hold"]:
                raise refuse(409, "IllegalTransition", "it is so already")
            job["jobState"] = "held" if change["hold"] else "pending"
        job["priority"] = change.get("priority", job["priority"])
        return 200, job

    def get_queue(self, _: None, query: dict[str, list[str]], __: None) -> Reply:
        waiting = [name for name, job in self.jobs.items() if job["jobState"] in WAITING]
        status, page = self.get_jobs(None, {"state": ["pending,preempted,held"], **query}, None)
        return status, page | {"pools": self.pools["pools"], "depth": len(waiting)}

    def post_plan(self, _: None, __: object, request: dict[str, Any]) -> Reply:
        self._check(request)
        return 200, {
            "decision": "wait",
            "position": 1,
            "reason": _reason("WaitsForCapacity", "no free ml.m5.large"),
            "wouldPreempt": [],
            "estimatedStart": None,
            "warnings": [],
        }

    def get_shares(self, *_: object) -> Reply:
        return 200, {"shares": [], "pools": []}

    def get_pools(self, *_: object) -> Reply:
        return 200, self.pools

    def put_pools(self, _: None, __: object, wanted: dict[str, Any]) -> Reply:
        if wanted.get("version", self.pools["version"]) != self.pools["version"]:
            raise refuse(409, "VersionConflict", "changed meanwhile", "version")
        self.pools = {"pools": wanted["pools"], "version": self.pools["version"] + 1}
        return 200, self.pools

    def get_settings(self, *_: object) -> Reply:
        return 200, self.settings

    def put_settings(self, _: None, __: object, wanted: dict[str, Any]) -> Reply:
        if wanted.get("version", self.settings["version"]) != self.settings["version"]:
            raise refuse(409, "VersionConflict", "changed meanwhile", "version")
        if wanted["order"] == "lifo":
            raise refuse(400, "InvalidRequest", "There is no order lifo.", "order")
        self.settings = {**wanted, "version": self.settings["version"] + 1}
        return 200, self.settings

    def get_openapi_json(self, *_: object) -> Reply:
        return 200, {"openapi": "3.1.0"}

    def _job(self, name: str) -> dict[str, Any]:
        if name not in self.jobs:
            raise refuse(404, "JobNotFound", f"no job {name}")
        return self.jobs[name]

    def sagemaker_create_training_job(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.train(request)

    def sagemaker_describe_training_job(self, request: dict[str, Any]) -> dict[str, Any]:
        job = self._training(request["TrainingJobName"])
        return {key: value for key, value in job.items() if key != "Tags"}

    def sagemaker_stop_training_job(self, request: dict[str, Any]) -> dict[str, Any]:
        self._training(request["TrainingJobName"])
        self.tell(request["TrainingJobName"], "Stopped", "Stopped", "Training job stopped")
        return {}

    def sagemaker_update_training_job(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"TrainingJobArn": self._training(request["TrainingJobName"])["TrainingJobArn"]}

    def sagemaker_delete_training_job(self, request: dict[str, Any]) -> dict[str, Any]:
        job = self._training(request["TrainingJobName"])
        if job["TrainingJobStatus"] not in ("Completed", "Failed", "Stopped"):
            raise sagemaker_error("ResourceInUse", "The training job has not ended.")
        if job.get("WarmPoolStatus") == {"Status": "Available"}:
            raise sagemaker_error("ValidationException", "The training job retains a warm pool.")
        del self.trainings[request["TrainingJobName"]]
        return {}

    def sagemaker_list_training_jobs(self, request: dict[str, Any]) -> dict[str, Any]:
        """Pages of the training jobs; `StatusEquals` applies after a page is cut, as the operation's page says."""
        member = {"Name": "TrainingJobName", "Status": "TrainingJobStatus"}.get(request.get("SortBy", ""))
        down = request.get("SortOrder", "Descending" if member is None else "Ascending") == "Descending"
        found = [job for job in self.trainings.values() if _is_listed(job, request)]
        found.sort(key=lambda job: (job[member or "CreationTime"], job["TrainingJobName"]), reverse=down)
        first = int(request.get("NextToken", "0"))
        after = first + request.get("MaxResults", 10)
        members = ("TrainingJobName", "TrainingJobArn", "CreationTime", "LastModifiedTime", "TrainingJobStatus")
        page = [job for job in found[first:after] if request.get("StatusEquals") in (None, job["TrainingJobStatus"])]
        return {
            "TrainingJobSummaries": [
                {name: job[name] for name in (*members, "WarmPoolStatus") if name in job} for job in page
            ],
            **({"NextToken": str(after)} if after < len(found) else {}),
        }

    def sagemaker_search(self, request: dict[str, Any]) -> dict[str, Any]:
        """Pages of the training jobs whose status is asked for with one filter; the last modified come first."""
        filters = request.get("SearchExpression", {}).get("Filters", [])
        wanted = [each["Value"] for each in filters if each["Name"] == "TrainingJobStatus"]
        found = [job for job in self.trainings.values() if job["TrainingJobStatus"] in wanted or not wanted]
        found.sort(key=lambda job: (job["LastModifiedTime"], job["TrainingJobName"]), reverse=True)
        first = int(request.get("NextToken", "0"))
        after = first + request.get("MaxResults", 10)
        following = {"NextToken": str(after)} if after < len(found) else {}
        return {"Results": [{"TrainingJob": job} for job in found[first:after]], **following}

    def sagemaker_add_tags(self, request: dict[str, Any]) -> dict[str, Any]:
        job = self._training(request["ResourceArn"].rpartition("/")[2])
        job["Tags"] = [*job.get("Tags", []), *request["Tags"]]
        return {"Tags": job["Tags"]}

    def sagemaker_delete_tags(self, request: dict[str, Any]) -> dict[str, Any]:
        job = self._training(request["ResourceArn"].rpartition("/")[2])
        job["Tags"] = [tag for tag in job.get("Tags", []) if tag["Key"] not in request["TagKeys"]]
        return {}

    def sagemaker_list_tags(self, request: dict[str, Any]) -> dict[str, Any]:
        job = self._training(request["ResourceArn"].rpartition("/")[2])
        return {"Tags": [*job.get("Tags", []), {"Key": "trainmaster:job", "Value": "set by the queue"}]}

    def sagemaker_create_hyper_parameter_tuning_job(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request["HyperParameterTuningJobName"]
        return {"HyperParameterTuningJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hyper-parameter-tuning-job/{name}"}

    def sagemaker_describe_hyper_parameter_tuning_job(self, request: dict[str, Any]) -> dict[str, Any]:
        counters = {"TrainingJobStatusCounters": {}, "ObjectiveStatusCounters": {}}
        config = {"Strategy": "Random", "ResourceLimits": {"MaxParallelTrainingJobs": 1}}
        told = {"HyperParameterTuningJobConfig": config, "CreationTime": time.time(), **counters}
        return (
            request
            | self.sagemaker_create_hyper_parameter_tuning_job(request)
            | told
            | {"HyperParameterTuningJobStatus": "InProgress"}
        )

    def sagemaker_create_pipeline(self, request: dict[str, Any]) -> dict[str, Any]:
        self.pipelines[request["PipelineName"]] = request
        return {"PipelineArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:pipeline/{request['PipelineName']}"}

    def sagemaker_start_pipeline_execution(self, request: dict[str, Any]) -> dict[str, Any]:
        arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:pipeline/{request['PipelineName']}/execution/a1b2c3"
        return {"PipelineExecutionArn": arn}

    def _training(self, name: str) -> dict[str, Any]:
        if name not in self.trainings:
            raise sagemaker_error("ValidationException", "Requested resource not found.")
        return self.trainings[name]


def a_session(region: str | None = REGION, token: str | None = None) -> boto3.session.Session:
    """A boto3 session with dummy credentials."""
    return aws_session(
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="wJalrXUtnFEMI",
        aws_session_token=token,
        region_name=region,
    )


def transport_to(world: World) -> httpx.MockTransport:
    """The world as httpx reaches it without a network."""

    def handle(request: httpx.Request) -> httpx.Response:
        target = request.url.raw_path.decode()
        status, body = world.handle(request.method, target, request.headers, request.content)
        return httpx.Response(status, json=body)

    return httpx.MockTransport(handle)


@contextmanager
def served(world: World) -> Iterator[str]:
    """The world behind a real HTTP server on the loopback; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # it would hold each body back until its headers are acknowledged

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if body.startswith(b"Action="):
                status, content = 403, IAM_DENIES
            else:
                status, reply = world.handle(self.command, self.path, dict(self.headers.items()), body)
                content = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _answer  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None:
            """Quiet: pytest shows what fails."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _ended_at(job: dict[str, Any]) -> str:
    """The order of a listing: jobs that have not ended, then the others, newest first."""
    if job["jobState"] not in ENDED:
        return "9"
    return str(job["attempts"][-1]["endedAt"] if job["attempts"] else job["entryTime"])


def _is_listed(job: dict[str, Any], request: dict[str, Any]) -> bool:
    warm = request.get("WarmPoolStatusEquals")
    plan = request.get("TrainingPlanArnEquals")
    inside = all(
        request.get(f"{time}After", 0.0) < job[time] < request.get(f"{time}Before", 1e12)
        for time in ("CreationTime", "LastModifiedTime")
    )
    return (
        inside
        and request.get("NameContains", "") in job["TrainingJobName"]
        and warm in (None, job.get("WarmPoolStatus", {}).get("Status"))
        and plan in (None, job["ResourceConfig"].get("TrainingPlanArn"))
    )


def _filled(request: dict[str, Any]) -> dict[str, Any]:
    """The request with what SageMaker fills in."""
    algorithm = {"EnableSageMakerMetricsTimeSeries": False} | request["AlgorithmSpecification"]
    output = {"KmsKeyId": "", "CompressionType": "GZIP"} | request["OutputDataConfig"]
    return request | {"AlgorithmSpecification": algorithm, "OutputDataConfig": output}


def _iso() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _reason(kind: str, message: str) -> dict[str, str]:
    return {"type": kind, "message": message}
