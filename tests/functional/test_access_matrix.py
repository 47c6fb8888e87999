"""Permissions: every role, on every route, with their own job and with another person's.

The requests go through the shipped handler. A route of the OpenAPI document without a row here fails.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_world import ApiWorld, Reply
from builders import NOW, P5, ROLE, a_job, a_request
from samples import examples
from trainmaster.domain.access.audit_listing import AuditFilter
from trainmaster.domain.access.rules import WITHOUT_SUBJECT, Action
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.policy.settings import Policy, Share
from trainmaster.handlers.api.app import OPERATIONS
from trainmaster.service.access import Access

ACCOUNT = "111122223333"


def role(name: str) -> str:
    """A role as the deployment's parameters and the settings name it."""
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def session(name: str, of: str = "ann") -> str | None:
    """The ARN of a session of the actor's role; None for the actor that is unknown."""
    return None if name == "unknown" else f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/{of}"


ACTORS = ("stranger", "viewer", "submitter", "resizer", "lead", "other-lead", "admin", "unknown")
"""Roles of the account: `lead` administers the share vision, in which all jobs are, `other-lead` another one."""
DEPLOYMENT = {"allowed_roles": (ROLE,), "admins": (role("admin"),), "viewers": (role("viewer"),)}
SHARES = {
    "vision": Share(
        name="vision", admins=(role("lead"),), submitters=(role("submitter"),), resizers=(role("resizer"),)
    ),
    "speech": Share(name="speech", admins=(role("other-lead"),), submitters=(role("other-*"),)),
}

EVER = AuditFilter(since=NOW - timedelta(days=1), until=NOW + timedelta(days=1))
ALL = frozenset(ACTORS)
KNOWN = ALL - {"unknown"}
"""All that can own a job."""
NONE: frozenset[str] = frozenset()
READERS = frozenset({"viewer", "lead", "other-lead", "admin"})
SUBMITTERS = frozenset({"submitter", "lead", "admin"})
ABOVE = frozenset({"lead", "admin"})
ADMIN = frozenset({"admin"})


@dataclass(frozen=True)
class Row:
    """A route with who may use it.

    Attributes:
        others: those that may, where the job is another person's, or where there is no job.
        own: those that may with a job of their own; None where there is no job.
        body: of a request; `{job}` in a text stands for a job's name.
    """

    others: frozenset[str]
    own: frozenset[str] | None = None
    body: Any = None


SAME_POOLS = [{"instanceType": P5, "cap": 2}]
ANSWER = {"token": "t", "outcome": "refused"}
MATRIX = {
    ("POST", "/add-job"): Row(SUBMITTERS, body=a_request("new", options={"share": "vision"})),
    ("POST", "/plan"): Row(SUBMITTERS, body=a_request("new", options={"share": "vision"})),
    ("GET", "/jobs"): Row(READERS),
    ("GET", "/jobs/{name}"): Row(READERS, KNOWN),
    ("GET", "/jobs/{name}/rendezvous"): Row(READERS, KNOWN),
    ("POST", "/jobs/{name}/resize"): Row(ABOVE | {"resizer"}, KNOWN, ANSWER),
    ("POST", "/jobs/{name}/speed"): Row(ABOVE | {"resizer"}, KNOWN, {"instances": 1, "perSecond": 2.5}),
    ("DELETE", "/jobs/{name}"): Row(ABOVE, KNOWN),
    ("PATCH", "/jobs/{name}"): Row(ABOVE, KNOWN, {"priority": 7, "hold": True}),
    ("GET", "/queue"): Row(READERS),
    ("GET", "/schedule"): Row(READERS),
    ("GET", "/shares"): Row(READERS),
    ("GET", "/usage"): Row(READERS),
    ("GET", "/pools"): Row(READERS),
    ("PUT", "/pools"): Row(ADMIN, body={"pools": [*SAME_POOLS, {"name": "new", "instanceType": P5, "cap": 1}]}),
    ("PUT", "/pools/{name}"): Row(ADMIN, body={"instanceType": P5, "cap": 5}),
    ("PATCH", "/pools/{name}"): Row(ADMIN, body={"cap": 6}),
    ("DELETE", "/pools/{name}"): Row(ADMIN),
    ("GET", "/settings"): Row(READERS),
    ("PUT", "/settings"): Row(ADMIN, body={"order": "fair"}),
    ("GET", "/audit"): Row(ADMIN),
    ("GET", "/manager"): Row(READERS),
    ("PUT", "/pause"): Row(ADMIN, body={"reason": "restore"}),
    ("DELETE", "/pause"): Row(ADMIN),
    ("POST", "/restore"): Row(ADMIN, body={"adopt": False}),
    ("GET", "/export"): Row(ADMIN),
    ("POST", "/import"): Row(ADMIN, body={"trainmasterExport": 1, "settings": {"order": "fair"}}),
    ("GET", "/openapi.json"): Row(ALL),
}
CHANGES = [route for route in MATRIX if route[0] != "GET"]


class Matrix(ApiWorld):
    """An API with two shares and one job of another person, `theirs`, in vision."""

    def __init__(self, owner: str | None = session("owner"), access: Access | None = None) -> None:
        super().__init__(pools={P5: Pool(P5, 2), "spare": Pool("spare", 1, type_=P5)}, settings=DEPLOYMENT)
        if access is not None:
            self.application.__dict__["access"] = access
        stored = self.memory.settings()
        self.memory.set_settings(policy=Policy(shares=SHARES), version=stored.version)
        self.seed(a_job("theirs", share="vision", submitted_by=None if owner is None else owner.rpartition("/")[0]))
        self.before = self.state()

    def state(self) -> tuple[Any, ...]:
        """All that a request could change."""
        now = self.memory.settings()
        jobs = {name: self.memory.find(name) for name in ("theirs", "new")}
        table = (self.memory.pause(), self.memory.restore(), len(self.memory.list_audit(EVER, limit=100).entries))
        settings = now.pools, now.policy, now.version
        return jobs, *settings, self.memory.request_of("theirs"), len(self.publisher.wakes), table

    def ask(self, route: tuple[str, str], caller: str | None) -> Reply:
        method, path = route
        name = "spare" if path.startswith("/pools") else "theirs"
        return self.event(method, path.format(name=name), MATRIX[route].body, caller=caller)


def test_every_route_has_a_row_and_an_action():
    document = ApiWorld().get("/openapi.json").body
    verbs = {"get", "put", "post", "delete", "patch"}
    routes = {(verb.upper(), path) for path, item in document["paths"].items() for verb in item if verb in verbs}
    assert routes == MATRIX.keys()
    assert {type(declared.action) for _, declared in OPERATIONS.values()} == {Action}


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("route", MATRIX, ids=" ".join)
def test_others(route, actor):
    world = Matrix()
    assert_decided(world, world.ask(route, session(actor)), allowed=actor in MATRIX[route].others)


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("route", [route for route, row in MATRIX.items() if row.own is not None], ids=" ".join)
def test_own(route, actor):
    world = Matrix(owner=session(actor))
    assert_decided(world, world.ask(route, session(actor, of="another")), allowed=actor in MATRIX[route].own)


def assert_decided(world: Matrix, reply: Reply, *, allowed: bool) -> None:
    """A refusal is a 403 that says where the role is granted, and changes nothing."""
    if allowed:
        assert reply.status in {200, 202, 409}, reply.body
        return
    assert reply.status == 403
    assert reply.error["type"] in {"AccessDenied", "ShareNotAllowed"}
    assert reply.error["hint"]
    assert world.state() == world.before


MALFORMED = {
    "no JSON": {"body": "{"},
    "a list": {"body": "[]"},
    "an unknown member": {"body": {"color": "red"}},
    "bytes that are no text": {"body": "/w==", "isBase64Encoded": True},
    "an unknown parameter": {"query": {"color": "red"}},
}
WITH_SHARE = {"/add-job", "/plan"}
"""Their roles depend on the share, which the request names, so it is read first."""


@pytest.mark.parametrize("malformed", MALFORMED.values(), ids=list(MALFORMED))
@pytest.mark.parametrize("actor", ["stranger", "viewer", "admin"])
@pytest.mark.parametrize("route", [route for route in MATRIX if route[1] not in WITH_SHARE], ids=" ".join)
def test_a_caller_without_the_role_learns_nothing_from_a_malformed_request(route, actor, malformed):
    world, row = Matrix(), MATRIX[route]
    reply = world.event(route[0], route[1].format(name="theirs"), **malformed, caller=session(actor))
    if actor in row.others:
        takes_body = row.body is not None or "isBase64Encoded" in malformed
        assert reply.status == (400 if takes_body or "query" in malformed else reply.status)
    else:
        assert (reply.status, reply.error["type"]) == (403, "AccessDenied")
    assert world.state() == world.before or reply.status == 200


@pytest.mark.parametrize("actor", ["stranger", "viewer", "admin"])
@pytest.mark.parametrize("name", ["no-job", "_", "x" * 3_000, "%23", "a%20b"])
def test_a_malformed_request_for_a_name_of_no_job_tells_readers_only(actor, name):
    reply = Matrix().event("PATCH", f"/jobs/{name}", "{", caller=session(actor))
    assert reply.status == (400 if actor in READERS else 403)


class RouteOnly(Access):
    """Grants the first decision of a request, which is the route's, and no further one."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "asked", [])

    def may(self, caller, action, policy, *, job=None, share=None):
        self.asked.append(action)
        return action in WITHOUT_SUBJECT and len(self.asked) == 1


@pytest.mark.parametrize("route", [route for route in MATRIX if route[1] != "/openapi.json"], ids=" ".join)
def test_each_use_case_decides_for_itself(route):
    """A route that forgot its guard, or another caller of a use case, reaches nothing without a decision."""
    world = Matrix(access=RouteOnly())
    assert_decided(world, world.ask(route, session("admin")), allowed=False)


@pytest.mark.parametrize("actor", ACTORS)
def test_names_of_no_job_are_told_to_readers_only(actor):
    for method in ("GET", "DELETE"):
        status = Matrix().event(method, "/jobs/no-job", caller=session(actor)).status
        assert status == (404 if actor in READERS else 403)


WITHOUT_ADMIN = st.sampled_from(sorted(ALL - ABOVE))
SESSIONS = st.text(string.ascii_letters + string.digits + "+=,.@-_", min_size=2, max_size=64)


@examples(30)
@given(st.lists(st.tuples(st.sampled_from(CHANGES), WITHOUT_ADMIN, SESSIONS), max_size=6))
def test_callers_without_admin_never_change_anothers_job_or_the_settings(asked):
    """Whatever they try, in any order and under any session's name; the share's resizer may answer its resizes."""
    world = Matrix()
    for route, actor, name in asked:
        world.ask(route, session(actor, of=name))
    jobs, *rest = world.state()
    before, *settings_before = world.before
    assert jobs["theirs"] == before["theirs"]
    assert rest[:4] == settings_before[:4]


@examples(30)
@given(st.sampled_from(sorted(MATRIX)), st.sampled_from(sorted(KNOWN)), SESSIONS, st.booleans())
def test_renaming_the_session_changes_nothing(route, actor, name, own):
    one, other = (Matrix(owner=session(actor if own else "owner", of=each)) for each in ("ann", name))
    first, second = one.ask(route, session(actor)), other.ask(route, session(actor, of=name))
    assert first.status == second.status
    for world in (one, other):
        new = world.memory.find("new")
        assert new is None or new.submitted_by == f"arn:aws:sts::{ACCOUNT}:assumed-role/{actor}"
    assert one.state()[1:] == other.state()[1:]
