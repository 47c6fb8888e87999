"""The managed policies for callers of the API: each opens the routes of its role, and no others."""

from __future__ import annotations

import re

import pytest
from scripts.render_template import ACCOUNT

from policy_evaluator import Request
from rendered import core_stack
from trainmaster.domain.access.rules import MAY, Action, Role
from trainmaster.handlers.api.app import OPERATIONS

STACK = core_stack()
VIEWER = frozenset({Role.ANYONE, Role.VIEWER})
SUBMITTER = VIEWER | {Role.SUBMITTER, Role.OWNER, Role.RESIZER}
ROLES = {
    "ViewerPolicy": VIEWER,
    "SubmitterPolicy": SUBMITTER,
    "ShareAdminPolicy": SUBMITTER | {Role.SHARE_ADMIN},
    "QueueAdminPolicy": frozenset(Role),
}
"""Roles that callers with each policy may have: a share admin has it in some shares, an owner for some jobs."""
ROUTES = [(each.method, each.rule, each.action) for _, each in OPERATIONS.values()]


def invoke(method: str, path: str, api: str = STACK.reference("QueueApi"), stage: str = "prod") -> Request:
    arn = f"arn:aws:execute-api:us-east-1:{ACCOUNT}:{api}/{stage}/{method}{path}"
    return Request("execute-api:Invoke", arn)


def policy(name: str) -> list[dict]:
    return [STACK.resources[name]["Properties"]["PolicyDocument"]]


@pytest.mark.parametrize("name", ROLES)
@pytest.mark.parametrize(("method", "rule", "action"), ROUTES)
def test_a_policy_opens_a_route_if_its_role_may_take_the_routes_action(evaluator, name, method, rule, action):
    """A new route is denied to all but queue admins until a policy names it, which fails here where others may."""
    path = re.sub("<.*?>", "job-1", rule)
    assert evaluator.allows(invoke(method, path), policy(name)) == bool(MAY[action] & ROLES[name])


def test_there_is_a_role_for_every_action_and_only_admins_administer():
    opened = {name: {action for action in Action if MAY[action] & roles} for name, roles in ROLES.items()}
    assert opened["QueueAdminPolicy"] == set(Action)
    assert Action.ADMINISTER not in opened["ViewerPolicy"] | opened["SubmitterPolicy"] | opened["ShareAdminPolicy"]
    assert opened["ViewerPolicy"] == {Action.DESCRIBE, Action.READ, Action.READ_JOB}


@pytest.mark.parametrize("name", ["SubmitterPolicy", "ShareAdminPolicy", "QueueAdminPolicy"])
def test_submitters_reach_the_routes_of_further_kinds_of_jobs(evaluator, name):
    assert evaluator.allows(invoke("POST", "/other-jobs"), policy(name))
    assert not evaluator.allows(invoke("POST", "/other-jobs"), policy("ViewerPolicy"))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_viewers_change_nothing(evaluator, method):
    for path in ("/jobs", "/jobs/a", "/add-job", "/plan", "/pools", "/pools/a", "/settings", "/other-jobs"):
        assert not evaluator.allows(invoke(method, path), policy("ViewerPolicy"))


@pytest.mark.parametrize("name", ROLES)
def test_no_policy_opens_another_api_or_stage_or_another_service(evaluator, name):
    assert not evaluator.allows(invoke("GET", "/jobs", api="another"), policy(name))
    assert not evaluator.allows(invoke("GET", "/jobs", stage="test"), policy(name))
    assert not evaluator.allows(Request("sqs:SendMessage", STACK.attribute("WakeQueue")), policy(name))
    table = Request("dynamodb:GetItem", STACK.attribute("QueueTable"), {"dynamodb:LeadingKeys": ["JOB#a"]})
    assert not evaluator.allows(table, policy(name))


@pytest.mark.parametrize("name", ROLES)
def test_policies_are_attached_to_no_one_and_are_outputs(name):
    properties = STACK.document["Resources"][name]["Properties"]
    assert not {"Groups", "Roles", "Users"} & properties.keys()
    assert STACK.document["Outputs"][f"{name}Arn"]["Value"] == {"Ref": name}
