"""Settings as documents: whatever goes in comes out, little is written, and what is wrong is named by its path."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as how

import builders as b
from any_policies import CAP, policies
from trainmaster.domain.document import document, member_name, value_of
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.policy.document import differences, policy_of, settings_document
from trainmaster.domain.policy.problems import policy_problems
from trainmaster.domain.policy.settings import (
    Budget,
    Expansion,
    FailureClass,
    Lending,
    Limits,
    Policy,
    Preemption,
    Resizes,
    Retry,
    Share,
    default_retries,
)

unhurried = how(deadline=None, suppress_health_check=[HealthCheck.too_slow])
POOLS = b.pools_of(b.a_pool(cap=CAP), b.a_pool(b.G5, CAP))


def through_text(value):
    return json.loads(json.dumps(value, allow_nan=False))


@unhurried
@given(policies())
def test_any_policy_comes_back_from_its_document_as_it_was(policy):
    assert policy_of(through_text(settings_document(policy))) == policy
    assert value_of(Policy, through_text(document(policy))) == policy


@unhurried
@given(policies(), policies())
def test_values_other_than_defaults_round_trip(policy, default):
    default = replace(default, shares={})
    assert policy_of(through_text(differences(policy, default)), default) == policy


@unhurried
@given(policies())
def test_settings_that_make_sense_have_no_problem(policy):
    assert list(policy_problems(policy, POOLS)) == []


def test_omitted_members_have_defaults_at_every_depth():
    assert policy_of({}) == Policy()
    said = policy_of({"preemption": {"cooldownSeconds": 1}, "retries": {"service": {"firstDelaySeconds": 5}}})
    assert said.preemption == replace(Preemption(), cooldown=timedelta(seconds=1))
    service = replace(default_retries()[FailureClass.SERVICE], first_delay=timedelta(seconds=5))
    assert said.retries == {**default_retries(), FailureClass.SERVICE: service}
    deployed = Policy(reservation_timeout=timedelta(hours=7))
    assert policy_of({"order": "backfill"}, deployed).reservation_timeout == timedelta(hours=7)


def test_shares_are_those_that_a_document_names():
    policy = policy_of({"shares": {"vision": {"nominal": {b.P5: 2}}}})
    assert policy.shares == {"vision": Share(name="vision", nominal={b.P5: 2})}
    assert "name" not in settings_document(policy)["shares"]["vision"]


def test_only_what_differs_is_written():
    assert differences(Policy(), Policy()) == {}
    share = Share(name="vision", nominal={b.P5: 2}, budget=Budget(gpu_hours=10.5))
    policy = Policy(reservations=3, shares={"vision": share}, preemption=Preemption(max_preemptions=None))
    assert differences(policy, Policy()) == {
        "reservations": 3,
        "preemption": {"maxPreemptions": None},
        "shares": {"vision": {"nominal": {b.P5: 2}, "budget": {"gpuHours": 10.5}}},
    }


def test_whole_seconds_are_whole_numbers():
    assert document(Preemption(timedelta(seconds=90), timedelta(milliseconds=1500)))["minRuntimeSeconds"] == 90
    assert json.dumps(document(Retry(first_delay=timedelta(seconds=0.5)))["firstDelaySeconds"]) == "0.5"
    assert member_name("usage_half_life", seconds=True) == "usageHalfLifeSeconds"
    assert member_name("type_") == "type"


@pytest.mark.parametrize(
    "given_",
    [
        {"order": "lifo"},
        {"placement": "worst-fit"},
        {"patienceSeconds": "x"},
        {"patienceSeconds": 1e300},
        {"shares": {"a": 7}},
    ],
)
def test_unknown_settings_are_rejected(given_):
    with pytest.raises(InvalidRequest):
        policy_of(given_)


def shared(**fields):
    return Policy(shares={"vision": Share(name="vision", **fields)})


def of(**fields):
    return Policy(**fields)


SECOND = timedelta(seconds=1)
WRONG = [
    ("reservations", of(reservations=-1)),
    ("reservations", of(reservations=101)),
    ("reservations", of(reservations=True)),
    ("reservations", of(reservations=1.5)),
    ("patienceSeconds", of(patience=timedelta(0))),
    ("patienceSeconds", of(patience=-SECOND)),
    ("patienceSeconds", of(patience=timedelta(days=4_000))),
    ("usageHalfLifeSeconds", of(usage_half_life=timedelta(0))),
    ("reservationTimeoutSeconds", of(reservation_timeout=timedelta(0))),
    ("reservationTimeoutSeconds", of(reservation_timeout=timedelta(days=8))),
    ("cpuWeight", of(cpu_weight=-0.1)),
    ("cpuWeight", of(cpu_weight=1.01)),
    ("cpuWeight", of(cpu_weight=math.nan)),
    ("cpuWeight", of(cpu_weight=True)),
    ("resizes.payback", of(resizes=Resizes(payback=-1))),
    ("resizes.payback", of(resizes=Resizes(payback=math.nan))),
    ("expansion.types[1]", of(expansion=Expansion(types=("ml.g5.*", "ml.g55.*")))),
    ("expansion.types[0]", of(expansion=Expansion(types=("ml.g?.2xlarge",)))),
    ("expansion.types[0]", of(expansion=Expansion(types=("",)))),
    ("expansion.types", of(expansion=Expansion(types=("*",) * 101))),
    ("expansion.maxPerType", of(expansion=Expansion(max_per_type=-1))),
    ("expansion.maxPerType", of(expansion=Expansion(max_per_type=True))),
    ("expansion.maxPerType", of(expansion=Expansion(max_per_type=17, max_instances=16))),
    ("expansion.maxInstances", of(expansion=Expansion(max_instances=-1))),
    ("expansion.dollarsPerHour", of(expansion=Expansion(dollars_per_hour=-0.01))),
    ("expansion.dollarsPerHour", of(expansion=Expansion(dollars_per_hour=math.inf))),
    ("expansion.utilization", of(expansion=Expansion(utilization=0))),
    ("expansion.utilization", of(expansion=Expansion(utilization=1.01))),
    ("expansion.utilization", of(expansion=Expansion(utilization=math.nan))),
    ("expansion.retireAfterSeconds", of(expansion=Expansion(retire_after=timedelta(0)))),
    ("expansion.retireAfterSeconds", of(expansion=Expansion(retire_after=timedelta(days=4_000)))),
    ("maxActions", of(max_actions=0)),
    ("maxActions", of(max_actions=501)),
    ("preemption.minRuntimeSeconds", of(preemption=Preemption(min_runtime=-SECOND))),
    ("preemption.minRuntimeSeconds", of(preemption=Preemption(min_runtime=timedelta(hours=5)))),
    ("preemption.cooldownSeconds", of(preemption=Preemption(cooldown=timedelta(hours=5)))),
    ("preemption.delaySeconds", of(preemption=Preemption(delay=-SECOND))),
    ("preemption.maxPreemptions", of(preemption=Preemption(max_preemptions=-1))),
    ("limits.maxMinRuntimeSeconds", of(limits=Limits(max_min_runtime=-SECOND))),
    ("limits.maxCooldownSeconds", of(limits=Limits(max_cooldown=timedelta(days=9_999)))),
    ("limits.minMaxPreemptions", of(limits=Limits(min_max_preemptions=-1))),
    ("retries.spot.maxRetries", of(retries={FailureClass.SPOT: Retry(max_retries=-1)})),
    ("retries.spot.firstDelaySeconds", of(retries={FailureClass.SPOT: Retry(first_delay=timedelta(0))})),
    ("retries.spot.maxDelaySeconds", of(retries={FailureClass.SPOT: Retry(max_delay=-SECOND)})),
    ("retries.spot.maxDelaySeconds", of(retries={FailureClass.SPOT: Retry(max_delay=SECOND)})),
    ("shares.a b", of(shares={"a b": Share(name="a b")})),
    ("shares", of(shares={f"s{n}": Share(name=f"s{n}") for n in range(201)})),
    ("shares.vision.nominal.ml.none", shared(nominal={"ml.none": 1})),
    ("shares.vision.nominal.ml.p5.48xlarge", shared(nominal={b.P5: -1})),
    ("shares.vision.nominal.ml.p5.48xlarge", shared(nominal={b.P5: True})),
    ("shares.vision.nominal.ml.p5.48xlarge", shared(nominal={b.P5: CAP + 1})),
    ("shares.vision.lends.ml.none", shared(lends={"ml.none": 0})),
    ("shares.vision.lends.ml.p5.48xlarge", shared(nominal={b.P5: 1}, lends={b.P5: 2})),
    ("shares.vision.lends.ml.p5.48xlarge", shared(lends={b.P5: 1})),
    ("shares.vision.lends.ml.p5.48xlarge", shared(nominal={b.P5: 1}, lends={b.P5: 1}, lending=Lending.RESERVE)),
    ("shares.vision.borrows.ml.p5.48xlarge", shared(borrows={b.P5: -1})),
    ("shares.vision.borrows.ml.p5.48xlarge", shared(borrows={b.P5: 1}, lending=Lending.LEND)),
    ("shares.vision.borrows.ml.p5.48xlarge", shared(borrows={b.P5: 0}, lending=Lending.RESERVE)),
    ("shares.vision.max.ml.p5.48xlarge", shared(max={b.P5: -1})),
    ("shares.vision.maxPerUser.ml.none", shared(max_per_user={"ml.none": 1})),
    ("shares.vision.weight", shared(weight=-0.5)),
    ("shares.vision.weight", shared(weight=math.nan)),
    ("shares.vision.weight", shared(weight=math.inf)),
    ("shares.vision.weight", shared(weight=True)),
    ("shares.vision.prefers[1]", shared(prefers=(b.P5, "ml.none"))),
    ("shares.vision.budget", shared(budget=Budget())),
    ("shares.vision.budget.gpuHours", shared(budget=Budget(gpu_hours=-1))),
    ("shares.vision.budget.dollars", shared(budget=Budget(dollars=math.inf))),
    ("shares.vision.budget.periodSeconds", shared(budget=Budget(dollars=1, period=timedelta(0)))),
    ("shares.vision.budget.periodSeconds", shared(budget=Budget(dollars=1, period=-SECOND))),
    (
        "shares.vision.submitters[1]",
        shared(submitters=("arn:aws:iam::111122223333:user/ada", "arn:aws:iam::1:role/vision")),
    ),
    ("shares.vision.submitters[0]", shared(submitters=("arn:aws:iam::111122223333:assumed-role/vision",))),
    ("shares.vision.submitters[0]", shared(submitters=("",))),
    ("shares.vision.admins[0]", shared(admins=("arn:aws:sts::111122223333:assumed-role/vision/ada",))),
    ("shares.vision.resizers[0]", shared(resizers=("arn:aws:iam::111122223333:role/team/v*",))),
    ("shares.vision.submitters[0]", shared(submitters=("arn:aws:sts::111122223333:assumed-role/a b",))),
    ("shares.vision.submitters", shared(submitters=("arn:aws:iam::111122223333:user/ada",) * 101)),
]


@pytest.mark.parametrize(("field", "policy"), WRONG, ids=[f"{n}-{field}" for n, (field, _) in enumerate(WRONG)])
def test_problems_are_named_by_their_path(field, policy):
    problems = list(policy_problems(policy, POOLS))
    assert field in {problem.field for problem in problems}
    assert all(problem.message and problem.hint for problem in problems)
    assert problems[0].refusal().field == problems[0].field


def test_shares_own_together_no_more_than_there_is():
    owned = {name: Share(name=name, nominal={b.P5: 5, b.G5: 4}) for name in ("default", "text", "vision")}
    (problem,) = policy_problems(Policy(shares=owned), POOLS)
    assert problem.field == "shares.vision.nominal.ml.p5.48xlarge"
    assert problem.message == "The shares own 15 x ml.p5.48xlarge together; the pool's cap is 12."
    assert not list(policy_problems(Policy(shares=owned), b.pools_of(b.a_pool(cap=15), b.a_pool(b.G5, 12))))


def test_a_pool_that_is_misspelt_is_guessed():
    (problem,) = policy_problems(shared(borrows={"ml.p5.48xlarg": 1}), POOLS)
    assert problem.hint == "Did you mean 'ml.p5.48xlarge'? The pools are: ml.g5.2xlarge, ml.p5.48xlarge."
