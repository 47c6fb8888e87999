"""Fuzz runs against the real handler: no error of the service, and no answer outside the OpenAPI document."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode, checks

from api_fuzz import BOB, CAROL, AnswerRule, as_wsgi, asked, examples, mutants
from api_world import ApiWorld
from builders import ROLE, a_held_job, a_job, a_running_job, an_ended_job

CHECKS = (
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
)
REQUESTS_OF_A_WORLD = 500
"""After so many requests the queue is a new one, so that its jobs neither end nor pile up."""


EVERYONE_IS_ADMIN: dict[str, Any] = {"allowed_roles": (ROLE,)}
ROLES_DIFFER = EVERYONE_IS_ADMIN | {"admins": (BOB,), "viewers": (CAROL,)}
"""Most requests come from a caller who may submit, and see and change their own jobs."""


def a_world(settings: Mapping[str, Any] = EVERYONE_IS_ADMIN) -> ApiWorld:
    world = ApiWorld(settings=settings)
    world.seed(a_job("job1"), a_running_job("job2"), a_held_job("job3"), an_ended_job("job5"))
    return world


def fuzzed(count: int, seed: int, settings: Mapping[str, Any] = EVERYONE_IS_ADMIN) -> Counter[int]:
    """Return the statuses of the answers to so many mutants."""
    rng, statuses = random.Random(seed), Counter[int]()
    while statuses.total() < count:
        world = a_world(settings)
        rule = AnswerRule(world)
        for event in mutants(examples("events"), min(REQUESTS_OF_A_WORLD, count), rng):
            statuses[rule.check(event, asked(world, event))] += 1
    return statuses


def test_the_examples_themselves_are_answered():
    world = a_world()
    rule = AnswerRule(world)
    statuses = Counter(rule.check(event, asked(world, event)) for event in examples("events"))
    assert statuses.keys() >= {200, 202}


@pytest.mark.usefixtures("quiet")
def test_an_error_of_the_service_and_an_answer_outside_the_document_are_found():
    world = a_world()
    rule = AnswerRule(world)
    (event,) = [each for each in examples("events") if each["path"] == "/settings" and each["httpMethod"] == "GET"]
    made = asked(world, event)
    assert rule.check(event, made) == 200
    with pytest.raises(AssertionError, match="5 is not of type"):
        rule.check(event, {**made, "body": '{"order": 5}'})
    with pytest.raises(AssertionError, match="answered 418"):
        rule.check(event, {**made, "statusCode": 418})
    with pytest.raises(AssertionError, match="InternalError"):
        rule.check(event, {**made, "statusCode": 500, "body": '{"error": {"type": "InternalError"}}'})


@pytest.mark.usefixtures("quiet")
def test_mutated_requests_are_answered_as_the_document_says():
    statuses = fuzzed(500, seed=16)
    assert {200, 202, 400, 404, 405, 415} <= statuses.keys(), statuses


@pytest.mark.usefixtures("quiet")
def test_mutated_requests_of_callers_with_different_roles_are_answered_as_the_document_says():
    statuses = fuzzed(250, seed=17, settings=ROLES_DIFFER)
    assert {200, 202, 400, 403, 404} <= statuses.keys(), statuses


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("settings", [EVERYONE_IS_ADMIN, ROLES_DIFFER], ids=["admins", "roles"])
@pytest.mark.parametrize("seed", range(4))
def test_many_mutated_requests_are_answered_as_the_document_says(seed, settings):
    statuses = fuzzed(3_000, seed, settings)
    assert statuses[400] < 0.9 * statuses.total(), statuses


def operations(settings: Mapping[str, Any]) -> dict[str, Any]:
    schema = schemathesis.openapi.from_wsgi("/openapi.json", as_wsgi(a_world(settings)))
    return {operation.label: operation for operation in (found.ok() for found in schema.get_all_operations())}


OPERATIONS = {"admin": operations(EVERYONE_IS_ADMIN), "submitter": operations(ROLES_DIFFER)}
"""The operations of the API as a caller of this role meets them."""


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("label", OPERATIONS["admin"])
@pytest.mark.parametrize("role", OPERATIONS)
def test_requests_made_from_the_document_are_answered_as_it_says(role, label, mode):
    """Schemathesis over HTTP: requests that the document allows, and such that it does not."""
    operation = OPERATIONS[role][label]

    @given(operation.as_strategy(generation_mode=mode))
    @settings(max_examples=60, deadline=None, suppress_health_check=[*HealthCheck])
    def answered(case: schemathesis.Case) -> None:
        case.validate_response(case.call(), checks=[*CHECKS])

    answered()
