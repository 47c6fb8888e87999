"""The queue's API as a small WSGI application, for the command line's tests: scripted, not scheduled.

The test says what becomes of a job (`start`, `preempt`, `end`). Behind `httpx.WSGITransport` it needs no network,
behind werkzeug it is a real server. It imports nothing of Trainmaster: it is a reading of the API's contract.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
from werkzeug.serving import make_server

STAGE = "/prod"
P5 = "ml.p5.48xlarge"
G5 = "ml.g5.2xlarge"
ROLE = "arn:aws:iam::123456789012:role/trainer"
ANN = "arn:aws:iam::123456789012:user/ann"
ENDED = ("completed", "failed", "stopped", "cancelled")
WAITING = ("pending", "preempted")
ACTIVE = ("starting", "running", "preempting", "resizing")
_EXACT = ("job", "action")
ENTERED = "2026-11-20T12:00:00Z"


def a_request(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE,
        "ResourceConfig": {"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": 30},
        "Tags": [{"Key": "team", "Value": "vision"}],
    } | changes


def a_view(name: str, state: str = "pending", priority: int = 0, **changes: Any) -> dict[str, Any]:
    """The API's view of a job."""
    return {
        "jobName": name,
        "kind": "training",
        "jobState": state,
        "priority": priority,
        "share": "default",
        "entryTime": ENTERED,
        "pools": [P5],
        "demand": [{P5: 1}],
        "resources": None,
        "instances": None,
        "preemptible": True,
        "position": None,
        "positionAtLeast": None,
        "reason": None,
        **starts(None),
        **dict.fromkeys(("expectedEnd", "expectedEndLow", "expectedEndHigh")),
        "deadline": None,
        "endedAt": None,
        "submittedBy": ANN,
        "failureReason": None,
        "trainingJobName": None,
        "attempts": [],
        "earlierAttempts": None,
        "elastic": None,
        "details": None,
        "history": [{"at": ENTERED, "from": None, "to": "pending", "reason": f"submitted by {ANN}", "attempt": None}],
        "jobDetails": a_request(name),
        "redacted": [],
        "why": None,
    } | changes


def a_rendezvous(job: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """The API's view of the nodes of a job: by default, none has joined."""
    return {
        "run": job and job["trainingJobName"],
        "round": None,
        "complete": False,
        "closed": False,
        "reason": None,
        "restarts": 0,
        "nodes": [],
        "problem": None,
    } | changes


def starts(expected: str | None, low: str | None = None, high: str | None = None) -> dict[str, Any]:
    """Estimated start of a job: a range, or one moment."""
    return {
        "estimatedStart": expected,
        "estimatedStartLow": low or expected,
        "estimatedStartHigh": high or expected,
    }


def an_attempt(name: str, number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "number": number,
        "trainingJobName": name if number == 1 else f"{name}-qstamp-{number}",
        "units": {P5: 1},
        "instanceType": None,
        "outcome": "active",
        "createdAt": "2026-11-20T12:00:05Z",
        "launched": True,
        "startedAt": "2026-11-20T12:01:00Z",
        "endedAt": None,
        "interruptions": 0,
        "reason": None,
    } | changes


def waits_for_capacity(free: int = 0) -> dict[str, Any]:
    message = f"waits for 1 x {P5}: {free} free for it now"
    return {"type": "WaitsForCapacity", "message": message, "pool": P5, "needed": 1, "free": free}


def a_part(pool: str = P5, own: int = 0, used: int = 0, **changes: Any) -> dict[str, Any]:
    """The API's view of a share's part of a pool."""
    units = {"nominal": own, "own": own, "used": used, "held": 0, "borrowed": max(used - own, 0), "lent": 0}
    limits = {"lends": own, "borrows": None, "limit": None, "limitedBy": None, "maxPerUser": None}
    return {"pool": pool, **units, **limits} | changes


def a_share(name: str, *parts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The API's view of a share."""
    policy = {"configured": True, "weight": 1.0, "lending": "lend-and-borrow"}
    use = {"running": 0, "waiting": 0, "fadedGpuHours": 0.0, "budget": None}
    return {"name": name, **policy, **use, "pools": list(parts)} | changes


def a_budget(**changes: Any) -> dict[str, Any]:
    """The API's view of a budget of GPU-hours."""
    hours = {"gpuHours": 100.0, "gpuHoursUsed": 40.0, "gpuHoursLeft": 60.0}
    dollars = {"dollars": None, "dollarsUsed": 0.0, "dollarsLeft": None}
    period = {"periodStart": "2026-11-16T00:00:00Z", "periodEnd": "2026-11-23T00:00:00Z"}
    return {**hours, **dollars, "spent": False, "whenSpent": "wait", **period} | changes


def an_interval(
    kind: str, job: str | None = None, start: str = ENTERED, until: str | None = None, **changes: Any
) -> Any:
    """The API's view of units that are held for a while."""
    ranges = dict.fromkeys(("fromLow", "fromHigh", "untilLow", "untilHigh"))
    about = {"jobState": None, "share": None, "priority": None, "units": 1, "attempt": None, "outcome": None}
    return {"kind": kind, "jobName": job, **about, "from": start, "until": until, **ranges} | changes


def a_usage_group(name: str | None, *waits: float, **changes: Any) -> dict[str, Any]:
    """The API's view of sums over jobs."""
    counts = ("jobs", "submitted", "started", "completed", "failed", "stopped", "cancelled", "preemptions")
    hours = ("instanceHours", "acceleratorHours", "dollars", "unpricedInstanceHours")
    lost = ("lostInstanceHours", "lostAcceleratorHours")
    ends = {"waitP50Seconds": max(waits, default=None), "waitP95Seconds": max(waits, default=None)}
    numbers = dict.fromkeys(counts, 0) | dict.fromkeys((*hours, *lost), 0.0) | {"unlistedAttempts": 0}
    return {"name": name, **numbers, "waits": list(waits), **ends} | changes


SETTABLE = (
    *("kind", "trainingPlanArn", "draining", "price", "vcpus", "memoryGib"),
    *("accelerators", "accelerator", "acceleratorMemoryGib"),
)


def a_pool(name: str, cap: int, **changes: Any) -> dict[str, Any]:
    """The API's view of a pool; drained once it is draining and unused. Types of ml.x9 are unknown."""
    figures = {"used": 0, "stopping": 0, "beyondMinimum": 0, "held": 0, "external": 0, "warm": 0, "free": cap}
    waits = {"waiting": 0, "waitingUnits": 0, "waitingMore": False, "weight": 0.5}
    plan = {"trainingPlanArn": None, "planStatus": None, "startsAt": None, "endsAt": None}
    has: dict[str, Any] = {"vcpus": 192, "memoryGib": 2048.0, "accelerator": "nvidia", "acceleratorMemoryGib": 640.0}
    if changes.get("instanceType", name).startswith("ml.x9."):
        has = {"vcpus": 0, "memoryGib": 0.0, "accelerators": 0, "accelerator": None, "acceleratorMemoryGib": 0.0}
    made = {"quota": None, "quotaAt": None, "madeFor": None, "madeAt": None, "price": 0.0, "onDemandPrice": 0.0}
    told = {"name": name, "instanceType": name, "kind": "on-demand", **plan, **made, **has, "cap": cap}
    pool = told | {"countExternal": False} | figures | waits | changes
    drains, left = pool.pop("draining", False), pool["used"] + pool["warm"]
    setting = {key: changes[key] for key in SETTABLE if changes.get(key)}
    if name != pool["instanceType"]:
        setting["name"] = name
    return (
        {"accelerators": {P5: 8}.get(pool["instanceType"], 1)}
        | pool
        | {
            "state": ("draining" if left else "drained") if drains else "in use",
            "setting": {key: pool[key] for key in ("instanceType", "cap", "countExternal")} | setting,
        }
    )


def some_settings() -> dict[str, Any]:
    """A part of what GET /settings tells."""
    share = {
        "nominal": {P5: 2},
        "lending": "lend",
        "lends": {},
        "weight": 1.0,
        "budget": None,
        "admins": [],
        "submitters": [],
        "resizers": [],
    }
    return {
        "order": "backfill",
        "preemption": {"minRuntimeSeconds": 0, "maxPreemptions": None},
        "shares": {"vision": share},
        "version": 4,
    }


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, kind: str, message: str, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"type": kind, "message": message, "field": field, "hint": hint}


def an_entry(action: str = "priority", **changes: Any) -> dict[str, Any]:
    """An entry of GET /audit."""
    return {
        "at": ENTERED,
        "action": action,
        "principal": ANN,
        "arn": ANN,
        "sourceIp": "198.51.100.7",
        "userAgent": "trainmaster/0.2.0",
        "requestId": "0aa1bb2c",
        "job": "job1",
        "before": {"priority": 1},
        "after": {"priority": 9},
    } | changes


class FakeApi:
    """The queue's state, the ways to move it on, and the WSGI application."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.pools = {"pools": [a_pool(P5, 2)], "version": 1}
        self.rendezvous: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, str, Any]] = []
        self.outage: list[int] = []
        self.others: set[str] = set()
        """Jobs of other people, which the caller may not change."""
        self.page_length = 2
        self.planned: dict[str, Any] = {}
        self.refused: dict[str, str] = {}
        self.changed = threading.Condition()
        self.on_set_pools: Callable[[], None] = lambda: None
        self.settings: dict[str, Any] = some_settings()
        self.shares: list[dict[str, Any]] = [a_share("default", a_part(own=2))]
        self.usage: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [(a_usage_group(None), [])]
        """Total and groups of each part of a usage report."""
        self.intervals: list[dict[str, Any]] = []
        """Of the pool P5, in a schedule."""
        self.entries: list[dict[str, Any]] = []
        self.manager: dict[str, Any] = {"pause": None, "restore": None}
        self.differences: list[dict[str, Any]] = []
        self.headers: list[tuple[str, str]] = []
        self.tag: str | None = None
        """The ETag of answers; a request that names it gets 304."""
        self.imported: list[dict[str, Any]] = []
        """Results of an import."""
        self.on_set_settings: Callable[[], None] = lambda: None

    # -- what the test does

    def add(self, name: str, state: str = "pending", priority: int = 0, **changes: Any) -> dict[str, Any]:
        self.jobs[name] = a_view(name, state, priority, **changes)
        return self.jobs[name]

    def move(self, name: str, state: str, why: str = "", **changes: Any) -> None:
        """The job comes into another state."""
        with self.changed:
            job = self.jobs[name]
            line = {"at": "2026-11-20T12:30:00Z", "from": job["jobState"], "to": state, "reason": why}
            job["history"].append(line | {"attempt": len(job["attempts"]) or None})
            job |= {"jobState": state, "position": None, "reason": None} | starts(None) | changes

    def start(self, name: str) -> None:
        job = self.jobs[name]
        job["attempts"].append(an_attempt(name, len(job["attempts"]) + 1))
        self.move(name, "running", "instances at work", trainingJobName=job["attempts"][-1]["trainingJobName"])

    def preempt(self, name: str) -> None:
        self.jobs[name]["attempts"][-1] |= {"outcome": "preempted", "reason": "preempted for job4"}
        self.move(name, "preempted", "preempted for job4", position=1, reason=waits_for_capacity())

    def end(self, name: str, state: str = "completed", failure: str | None = None) -> None:
        if self.jobs[name]["attempts"]:
            self.jobs[name]["attempts"][-1] |= {"outcome": state, "endedAt": "2026-11-20T12:30:00Z"}
        self.move(name, state, failure or state, failureReason=failure)

    def await_calls(self, times: int, method: str = "GET", seconds: float = 30.0) -> None:
        """Block until so many calls have come; fails after so many seconds."""
        with self.changed:
            seen = self.changed.wait_for(lambda: sum(call[0] == method for call in self.calls) >= times, seconds)
        assert seen, f"only {self.calls}"

    # -- the application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, body = self._answer(environ)
        unchanged = status == 200 and self.tag is not None and environ.get("HTTP_IF_NONE_MATCH") == self.tag
        status, content = (304, b"") if unchanged else (status, json.dumps(body).encode())
        headers = [("content-type", "application/json"), ("content-length", str(len(content))), *self.headers]
        headers += [] if self.tag is None else [("etag", self.tag)]
        start_response(f"{status} {httpx.codes.get_reason_phrase(status) or 'Unknown'}", headers)
        return [content]

    def _answer(self, environ: dict[str, Any]) -> tuple[int, Any]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"].removeprefix(STAGE)
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = json.loads(environ["wsgi.input"].read(length)) if length else None
        query = {key: values[0] for key, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
        with self.changed:
            self.calls.append((method, path, body if body is not None else query))
            self.changed.notify_all()
            if self.outage:
                return self.outage.pop(0), {"message": "outage"}
            if "execute-api" not in environ.get("HTTP_AUTHORIZATION", ""):
                return 403, {"message": "Missing Authentication Token"}
            try:
                return self._route(method, path, query, body)
            except Refusal as refusal:
                return refusal.status, {"error": refusal.error}

    def _route(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        _, root, *rest = path.split("/")
        verb = f"{method.lower()}_{root.replace('-', '_').replace('.', '_')}" + ("_one" if rest else "")
        return getattr(self, verb)(*rest, body if body is not None else query)

    def post_add_job(self, request: dict[str, Any]) -> tuple[int, Any]:
        old = self._check(request)
        name = request["TrainingJobName"]
        tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
        told = {"jobDetails": request, "share": tags.get("trainmaster:share", "default"), "position": 1}
        job = old or self.add(name, "pending", int(tags.get("priority", 0)), **told)
        job["reason"] = waits_for_capacity()
        warnings = ["The job has no CheckpointConfig: preempted, it would start from the beginning."]
        return (200 if old else 202), _brief(job) | {
            "submittedBefore": old is not None,
            "warnings": warnings,
            "wouldPreempt": ["job1"],
        }

    def post_plan(self, request: dict[str, Any]) -> tuple[int, Any]:
        self._check(request)
        return 200, {
            "decision": "wait",
            "position": 3,
            "reason": waits_for_capacity(),
            "wouldTake": {},
            "wouldPreempt": [],
            "wouldStart": [],
            "wouldDelay": [],
            "wouldCreate": [],
            "wouldCreateNone": None,
            "expansionEnabled": False,
            "wouldChange": [],
            "madeDollarsPerHour": {"now": 0.0, "then": 0.0},
            "positionAtLeast": None,
            "deadline": None,
            "scaling": None,
            **starts("2026-11-20T16:00:00Z"),
            "warnings": ["no CheckpointConfig"],
        } | self.planned

    def get_jobs(self, query: dict[str, str]) -> tuple[int, Any]:
        states = query["state"].split(",") if "state" in query else None
        parts = [ACTIVE, WAITING, ("held",), ENDED]
        listed = [job for part in parts for job in self.jobs.values() if job["jobState"] in part]
        found = [
            _brief(job)
            for job in listed
            if (states is None or job["jobState"] in states)
            and query.get("share", job["share"]) == job["share"]
            and ("pool" not in query or query["pool"] in job["pools"])
            and job["jobName"].startswith(query.get("prefix", ""))
        ]
        first = int(query.get("cursor", 0))
        after = first + self.page_length
        return 200, {"jobs": found[first:after], "nextCursor": str(after) if after < len(found) else None}

    def get_queue(self, query: dict[str, str]) -> tuple[int, Any]:
        status, page = self.get_jobs(query | {"state": ",".join(WAITING)})
        return status, page | {"pools": self.pools["pools"]}

    def get_shares(self, _: dict[str, str]) -> tuple[int, Any]:
        about = {"at": ENTERED, "order": "fair", "usageHalfLifeSeconds": 604_800.0, "more": False, "pools": []}
        return 200, about | {"shares": self.shares}

    def get_schedule(self, query: dict[str, str]) -> tuple[int, Any]:
        period = {"from": query.get("from", "2026-11-19T12:00:00Z"), "to": query.get("to", "2026-11-22T12:00:00Z")}
        about = {"name": P5, "kind": "on-demand", "instanceType": P5, "cap": 2, "draining": False, "leftOut": 0}
        pools = [about | {"intervals": self.intervals}] if query.get("pool", P5) == P5 else []
        return 200, {"at": ENTERED, **period, "pastFrom": period["from"], "more": False, "pools": pools}

    def get_usage(self, query: dict[str, str]) -> tuple[int, Any]:
        number = int(query.get("cursor", 0))
        total, groups = self.usage[number]
        after = str(number + 1) if number + 1 < len(self.usage) else None
        period = {"from": query.get("from", "2026-11-13T12:00:00Z"), "to": query.get("to", ENTERED)}
        about = {"at": ENTERED, **period, "by": query.get("by", "share"), "jobsRead": 1, "nextCursor": after}
        return 200, about | {"total": total, "groups": groups}

    def get_jobs_one(self, name: str, *rest: object) -> tuple[int, Any]:
        job = self._job(name)
        return 200, self.rendezvous.get(name, a_rendezvous(job)) if rest[0] == "rendezvous" else job

    def post_jobs_one(self, name: str, _: str, answer: dict[str, Any]) -> tuple[int, Any]:
        """The answer to a custom resize."""
        job = self._job(name)
        if job["jobState"] != "resizing":
            raise Refusal(409, "IllegalTransition", "the resize of this token is over", "token")
        self.move(name, "running", answer["outcome"])
        return 200, _brief(job)

    def delete_jobs_one(self, name: str, query: dict[str, str]) -> tuple[int, Any]:
        if query.get("purge") == "true":
            job = self._job(name)
            if job["jobState"] not in ENDED:
                raise Refusal(409, "IllegalTransition", f"Job {name} is {job['jobState']} and has not ended.")
            return 200, _brief(self.jobs.pop(name))
        if name in self.others:
            raise Refusal(403, "AccessDenied", f"ada may not change the job {name}.", "name", "Its owner may.")
        job = self._job(name)
        if job["jobState"] in ENDED:
            raise Refusal(409, "IllegalTransition", f"job {name} is {job['jobState']}", "jobState")
        because = f": {query['reason']}" if "reason" in query else ""
        if job["jobState"] in ACTIVE:
            self.move(name, job["jobState"], f"stop requested by {ANN}{because}")
            return 202, _brief(job)
        self.move(name, "cancelled", f"cancelled by {ANN}{because}")
        return 200, _brief(job)

    def patch_jobs_one(self, name: str, change: dict[str, Any]) -> tuple[int, Any]:
        job = self._job(name)
        if change.get("hold") is False and job["jobState"] != "held":
            raise Refusal(409, "IllegalTransition", f"Job {name} is {job['jobState']}, not held.", "hold")
        if "hold" in change:
            self.move(name, "held" if change["hold"] else "pending", f"held by {ANN}")
        job["priority"] = change.get("priority", job["priority"])
        bounds = {bound: change[bound] for bound in ("minInstances", "maxInstances") if bound in change}
        if bounds and job["elastic"] is None:
            raise Refusal(409, "IllegalTransition", f"Job {name} is not elastic.", next(iter(bounds)))
        if bounds:
            job["elastic"] = {**job["elastic"], **bounds}
        return 200, _brief(job)

    def get_pools(self, _: object) -> tuple[int, Any]:
        return 200, self.pools

    def put_pools(self, wanted: dict[str, Any]) -> tuple[int, Any]:
        self.on_set_pools()
        if wanted["version"] != self.pools["version"]:
            raise Refusal(409, "VersionConflict", "The pools were changed meanwhile.", "version")
        pools = [
            a_pool(pool.get("name", pool["instanceType"]), **{key: pool[key] for key in pool if key != "name"})
            for pool in wanted["pools"]
        ]
        self.pools = {"pools": pools, "version": self.pools["version"] + 1}
        return 200, self.pools

    def put_pools_one(self, name: str, wanted: dict[str, Any]) -> tuple[int, Any]:
        kept = [pool for pool in self.pools["pools"] if pool["name"] != name]
        self.pools = {"pools": [*kept, a_pool(name, **wanted)], "version": self.pools["version"] + 1}
        return 200, self._pool(name)

    def patch_pools_one(self, name: str, changes: dict[str, Any]) -> tuple[int, Any]:
        now = self._pool(name)
        figures = {key: now[key] for key in ("used", "warm", "waiting")}
        changed = a_pool(
            name, **{key: value for key, value in now["setting"].items() if key != "name"} | figures | changes
        )
        self.pools["pools"] = [changed if pool is now else pool for pool in self.pools["pools"]]
        return 200, changed

    def delete_pools_one(self, name: str, query: dict[str, str]) -> tuple[int, Any]:
        pool = self._pool(name)
        if pool["used"] and query.get("force") != "true":
            said = f"The pool is in use: job1 hold {pool['used']} x {name}."
            raise Refusal(409, "PoolInUse", said, "name", "Drain it first, or force it.")
        self.pools["pools"].remove(pool)
        concerned = {"stranded": 0, "running": ["job1"] if pool["used"] else [], "more": pool["waitingMore"]}
        return 200, self.pools | {"moved": pool["waiting"]} | concerned

    def get_settings(self, _: object) -> tuple[int, Any]:
        return 200, self.settings

    def put_settings(self, wanted: dict[str, Any]) -> tuple[int, Any]:
        self.on_set_settings()
        if wanted.get("version") not in (None, self.settings["version"]):
            raise Refusal(409, "VersionConflict", "The settings were changed meanwhile.", "version")
        if wanted.get("order") not in ("fifo", "backfill", "fair"):
            raise Refusal(400, "InvalidRequest", "order should be 'fifo', 'backfill' or 'fair'.", "order")
        self.settings = some_settings() | wanted | {"version": self.settings["version"] + 1}
        return 200, self.settings

    def get_audit(self, query: dict[str, str]) -> tuple[int, Any]:
        start, limit = int(query.get("cursor", 0)), int(query.get("limit", 50))
        found = [each for each in self.entries if all(each[name] == query.get(name, each[name]) for name in _EXACT)]
        more = start + limit < len(found)
        return 200, {"entries": found[start : start + limit], "nextCursor": str(start + limit) if more else None}

    def get_manager(self, _: object) -> tuple[int, Any]:
        report = self.manager["restore"]
        if report is not None and report["comparedAt"] is None:
            adopted = sorted({each["job"] for each in self.differences}) if report["adopt"] else []
            found = {"comparedAt": "2026-11-21T12:01:00Z", "differences": self.differences, "adopted": adopted}
            self.manager = self.manager | {"restore": report | found}
        return 200, self.manager

    def put_pause(self, wanted: dict[str, Any]) -> tuple[int, Any]:
        self.manager["pause"] = {
            "reason": wanted["reason"],
            "by": "arn:aws:iam::111122223333:user/ann",
            "at": "2026-11-21T12:00:00Z",
        }
        return 200, self.manager

    def delete_pause(self, _: object) -> tuple[int, Any]:
        self.manager["pause"] = None
        return 200, self.manager

    def post_restore(self, wanted: dict[str, Any]) -> tuple[int, Any]:
        if self.manager["pause"] is None:
            raise Refusal(409, "IllegalTransition", "The manager is not paused.", None, "Pause it first.")
        by = "arn:aws:iam::111122223333:user/ann"
        report = {"askedAt": "2026-11-21T12:00:00Z", "askedBy": by, "adopt": wanted["adopt"], "comparedAt": None}
        self.manager["restore"] = report | {"differences": [], "leftOut": 0, "adopted": [], "failed": []}
        return 202, self.manager

    def get_export(self, _: object) -> tuple[int, Any]:
        jobs = [{"request": a_request(name), "submittedBy": ANN} for name in self.jobs]
        head = {"trainmasterExport": 1, "release": "0.2.0", "queue": "q", "at": ENTERED, "settings": self.settings}
        return 200, head | {"pools": self.pools["pools"], "jobs": jobs, "skipped": ["other"], "nextCursor": None}

    def post_import(self, part: dict[str, Any]) -> tuple[int, Any]:
        done = not part.get("dryRun")
        return 200, {"jobs": self.imported, "settingsChange": True, "poolsChange": True, "done": done}

    def get_openapi_json(self, _: object) -> tuple[int, Any]:
        return 200, json.loads((Path(__file__).parent.parent / "docs" / "reference" / "openapi.json").read_text())

    def _check(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The job that has been submitted with this very request."""
        if request.get("RoleArn") != ROLE:
            raise Refusal(403, "RoleNotAllowed", "The queue may not pass this role.", "RoleArn", "Use another role.")
        if request["ResourceConfig"].get("InstanceCount", 1) > self.pools["pools"][0]["cap"]:
            field = "ResourceConfig.InstanceCount"
            raise Refusal(422, "NeverFits", "The pool's cap is 2.", field, "Ask for fewer instances.")
        name = request["TrainingJobName"]
        old = self.jobs.get(name)
        if old and old["jobDetails"] != request:
            said = f"{name} belongs to a job with another request."
            raise Refusal(409, "NameTaken", said, "TrainingJobName", "Choose another name.")
        return old

    def _pool(self, name: str) -> dict[str, Any]:
        found = next((pool for pool in self.pools["pools"] if pool["name"] == name), None)
        if found is None:
            raise Refusal(404, "PoolNotFound", f"There is no pool {name}.", "name", "GET /pools lists the pools.")
        return found

    def _job(self, name: str) -> dict[str, Any]:
        if name not in self.jobs and name in self.refused:
            raise Refusal(404, "JobNotFound", self.refused[name], "name", "GET /jobs lists the names.")
        if name not in self.jobs:
            hint = "GET /jobs lists the names."
            raise Refusal(404, "JobNotFound", f"There is no job {name}.", "name", hint)
        return self.jobs[name]


def _brief(job: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in job.items() if key not in ("history", "jobDetails", "redacted")}


@contextmanager
def served(api: FakeApi) -> Iterator[str]:
    """The API behind a real HTTP server on the loopback; gives its address with the stage."""
    server = make_server("127.0.0.1", 0, api, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{STAGE}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
