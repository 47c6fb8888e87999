"""Queue admins where the deployment names none: the callers that IAM allows to update the stack."""

from __future__ import annotations

import pytest

from builders import a_job
from trainmaster import bootstrap
from trainmaster.domain.access.caller import UNKNOWN, Caller
from trainmaster.domain.access.rules import MAY, Action, Role
from trainmaster.domain.errors import AccessDenied
from trainmaster.domain.policy.settings import Policy, Share
from trainmaster.local.memory.permissions import Grant, MemoryPermissions
from trainmaster.service.access import NO_ADMINS, Access

STACK = "arn:aws:cloudformation:us-east-1:111122223333:stack/trainmaster/0a1b2c3d"
DEPLOYER = Caller("arn:aws:sts::111122223333:assumed-role/ops/ada")
OTHER = Caller("arn:aws:sts::111122223333:assumed-role/research/ada")
UPDATES = Grant(DEPLOYER.principal, "cloudformation:UpdateStack", STACK)


def policy() -> Policy:
    return Policy(shares={"vision": Share(name="vision", admins=("arn:aws:iam::111122223333:user/lead",))})


def asked(*grants: Grant, **settings: object) -> Access:
    return Access(stack=STACK, permissions=MemoryPermissions(grants), **settings)


@pytest.mark.parametrize("action", [action for action in Action if Role.QUEUE_ADMIN in MAY[action]])
def test_a_principal_that_may_update_the_stack_is_an_admin(action):
    access = asked(UPDATES, viewers=())
    job = a_job(share="vision", submitted_by="arn:aws:iam::111122223333:user/bob")
    assert access.may(DEPLOYER, action, policy, job=job, share="vision")
    assert not access.may(OTHER, action, policy, job=job) or action is Action.SUBMIT


@pytest.mark.parametrize("caller", [UNKNOWN, OTHER, Caller("arn:aws:iam::444455556666:user/ops")])
def test_no_other_caller_is_one(caller):
    assert not asked(UPDATES).may(caller, Action.ADMINISTER, policy)


def test_an_answer_that_iam_cannot_give_is_a_no():
    assert not asked(Grant(answer=None)).may(DEPLOYER, Action.ADMINISTER, policy)


def test_iam_is_not_asked_where_the_deployment_names_admins():
    permissions = MemoryPermissions()
    access = Access(admins=("arn:aws:iam::111122223333:user/lead",), stack=STACK, permissions=permissions)
    assert not access.may(DEPLOYER, Action.ADMINISTER, policy)
    assert not permissions.asked


def test_iam_is_asked_last():
    permissions = MemoryPermissions()
    mine = a_job(submitted_by=OTHER.principal)
    access = Access(stack=STACK, permissions=permissions)
    assert access.may(OTHER, Action.CHANGE_JOB, policy, job=mine)
    assert access.may(OTHER, Action.READ, policy)
    assert not permissions.asked


@pytest.mark.parametrize(
    ("access", "hint"),
    [
        (asked(), f"allows cloudformation:UpdateStack on {STACK}"),
        (Access(admins=("arn:aws:iam::111122223333:user/lead",)), "parameter Admins names"),
        (NO_ADMINS, "Name its admins in the deployment's parameter Admins."),
    ],
)
def test_a_refusal_says_where_admins_are_named(access, hint):
    with pytest.raises(AccessDenied, match="assumed-role/research/ada is not an admin of this queue") as refused:
        access.require(OTHER, Action.ADMINISTER, policy)
    assert hint in refused.value.hint


def test_a_refusal_for_a_job_names_its_share():
    with pytest.raises(AccessDenied, match="may not change the job job1") as refused:
        NO_ADMINS.require(OTHER, Action.CHANGE_JOB, policy, job=a_job(share="vision"))
    assert "shares.vision.admins" in refused.value.hint


@pytest.mark.parametrize("asks", [True, False])
def test_the_application_asks_iam_if_the_deployment_lets_it(asks):
    settings = bootstrap.Settings(queue="q", table="t", stack=STACK, check_pass_role=asks)
    application = bootstrap.Application(settings)
    application.__dict__["permissions"] = MemoryPermissions([UPDATES])
    assert application.access.may(DEPLOYER, Action.ADMINISTER, policy) is asks
