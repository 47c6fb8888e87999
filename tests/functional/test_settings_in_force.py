"""GET and PUT /settings, and what is set deciding what happens; docs/reference/settings.md, held against both."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from test_api_properties import VALUES, places

from any_policies import CAP, policies
from api_world import RESEARCH, ApiWorld
from builders import G5, P5, ROLE, a_pool, a_request, pools_of
from samples import examples
from trainmaster.domain.policy.document import settings_document
from trainmaster.domain.policy.settings import Budget, Order, Policy, Share
from trainmaster.handlers.models.settings import Settings, SettingsInForce

PAGE = (Path(__file__).parent.parent.parent / "docs" / "reference" / "settings.md").read_text()
TWO_SHARES = {"shares": {"vision": {"nominal": {P5: 1}}, "text": {"lending": "lend", "weight": 2}}}


@pytest.fixture
def world():
    return ApiWorld()


def test_an_unconfigured_queue_returns_the_default_settings(world):
    reply = world.get("/settings")
    assert reply.status == 200
    assert reply.body == {**settings_document(Policy()), "version": 0}


def test_new_settings_take_effect_and_wake_the_manager(world):
    reply = world.put("/settings", {**TWO_SHARES, "preemption": {"maxPreemptions": None}, "version": 0})
    assert (reply.status, reply.body["version"]) == (200, 1)
    assert reply.body["shares"]["vision"]["nominal"] == {P5: 1}
    assert reply.body["preemption"] == {**settings_document(Policy())["preemption"], "maxPreemptions": None}
    assert world.get("/settings").body == reply.body
    assert world.publisher.wakes == [0]
    assert world.memory.begin_pass().policy.shares["text"].weight == 2


def test_omitted_settings_return_to_their_defaults(world):
    world.put("/settings", {**TWO_SHARES, "order": "fifo"})
    assert world.put("/settings", {}).body == {**settings_document(Policy()), "version": 2}


def test_settings_from_get_can_be_put(world):
    world.put("/settings", {**TWO_SHARES, "order": "fair"})
    got = world.get("/settings").body
    assert world.put("/settings", got).body == {**got, "version": got["version"] + 1}


def test_the_old_name_of_an_order_is_accepted_and_returned_as_the_new_one(world):
    reply = world.put("/settings", {"order": "least-attained-service"})
    assert (reply.status, reply.body["order"]) == (200, "gittins")
    assert world.get("/settings").body["order"] == "gittins"
    assert world.memory.begin_pass().policy.order is Order.GITTINS


def test_a_version_that_is_not_in_force_any_more_is_refused(world):
    world.put("/settings", {"order": "fifo", "version": 0})
    assert world.put("/settings", {"order": "fair", "version": 0}).kind == (409, "VersionConflict", "version")
    assert world.put("/pools", {"pools": [{"instanceType": P5, "cap": 3}], "version": 1}).body["version"] == 2
    assert world.put("/settings", {"order": "fair", "version": 1}).kind == (409, "VersionConflict", "version")
    assert world.get("/settings").body["order"] == "fifo"


def test_the_deployments_hold_goes_on_until_the_settings_say_another():
    world = ApiWorld(settings={"allowed_roles": (ROLE,)})
    world.memory._policy = Policy(reservation_timeout=timedelta(hours=5))
    assert world.put("/settings", {"order": "fifo"}).body["reservationTimeoutSeconds"] == 5 * 3600
    assert world.put("/settings", {"reservationTimeoutSeconds": 60}).body["reservationTimeoutSeconds"] == 60
    assert world.put("/settings", {}).body["reservationTimeoutSeconds"] == 5 * 3600


def test_pools_that_shares_name_may_be_lowered_and_the_next_settings_have_to_mend_it(world):
    world.put("/settings", {"shares": {"vision": {"nominal": {P5: 2}}}})
    assert world.put("/pools", {"pools": [{"instanceType": P5, "cap": 1}]}).status == 200
    got = world.get("/settings").body
    assert world.put("/settings", got).kind == (400, "InvalidRequest", f"shares.vision.nominal.{P5}")


def test_a_share_accepts_only_its_submitters():
    ops = "arn:aws:iam::111122223333:user/ops"
    world = ApiWorld(settings={"allowed_roles": (ROLE,), "admins": (ops,)})
    others = "arn:aws:sts::111122223333:assumed-role/others"
    assert world.event("PUT", "/settings", {"shares": {"vision": {"submitters": [others]}}}, caller=ops).status == 200
    refused = world.post("/add-job", a_request("job1", options={"share": "vision"}))
    assert refused.kind == (403, "ShareNotAllowed", "Tags[0].Value")
    world.event("PUT", "/settings", {"shares": {"vision": {"submitters": [others, RESEARCH]}}}, caller=ops)
    assert world.post("/add-job", a_request("job1", options={"share": "vision"})).status == 202


WRONG = [
    ({"ordre": "fifo"}, "ordre"),
    ({"order": "lifo"}, "order"),
    ({"order": None}, "order"),
    ({"order": ["fifo"]}, "order"),
    ({"policy": {"order": "fifo"}}, "policy"),
    ({"reservations": True}, "reservations"),
    ({"reservations": "1"}, "reservations"),
    ({"reservations": 1.5}, "reservations"),
    ({"patienceSeconds": 0}, "patienceSeconds"),
    ({"patienceSeconds": -1}, "patienceSeconds"),
    ({"patienceSeconds": "600"}, "patienceSeconds"),
    ({"patienceSeconds": True}, "patienceSeconds"),
    ({"patienceSeconds": 1e300}, "patienceSeconds"),
    ({"patience_seconds": 5}, "patience_seconds"),
    ({"patience": 5}, "patience"),
    ({"usageHalfLifeSeconds": 0}, "usageHalfLifeSeconds"),
    ({"usageHalfLifeSeconds": None}, "usageHalfLifeSeconds"),
    ({"usageHalfLifeSeconds": 1e-9}, "usageHalfLifeSeconds"),
    ({"reservationTimeoutSeconds": 0}, "reservationTimeoutSeconds"),
    ({"reservationTimeoutSeconds": 8 * 86_400}, "reservationTimeoutSeconds"),
    ({"expansion": None}, "expansion"),
    ({"expansion": {"enabled": 1}}, "expansion.enabled"),
    ({"expansion": {"types": "ml.g5.*"}}, "expansion.types"),
    ({"expansion": {"types": ["ml.g55.*"]}}, "expansion.types[0]"),
    ({"expansion": {"maxPerType": 17}}, "expansion.maxPerType"),
    ({"expansion": {"maxInstances": -1}}, "expansion.maxInstances"),
    ({"expansion": {"maxInstances": 8.5}}, "expansion.maxInstances"),
    ({"expansion": {"dollarsPerHour": -1}}, "expansion.dollarsPerHour"),
    ({"expansion": {"choose": "largest"}}, "expansion.choose"),
    ({"expansion": {"utilization": 0}}, "expansion.utilization"),
    ({"expansion": {"utilization": 1.5}}, "expansion.utilization"),
    ({"expansion": {"retireAfterSeconds": 0}}, "expansion.retireAfterSeconds"),
    ({"expansion": {"retireAfter": 60}}, "expansion.retireAfter"),
    ({"maxActions": 0}, "maxActions"),
    ({"preemption": None}, "preemption"),
    ({"preemption": {"minRuntime": 5}}, "preemption.minRuntime"),
    ({"preemption": {"minRuntimeSeconds": 20_000}}, "preemption.minRuntimeSeconds"),
    ({"preemption": {"maxPreemptions": True}}, "preemption.maxPreemptions"),
    ({"preemption": {"maxPreemptions": 10**30}}, "preemption.maxPreemptions"),
    ({"limits": {"minMaxPreemptions": -1}}, "limits.minMaxPreemptions"),
    ({"retries": {"disk": {}}}, "retries.disk"),
    ({"retries": {"spot": {"firstDelaySeconds": 0}}}, "retries.spot.firstDelaySeconds"),
    ({"retries": {"spot": {"firstDelaySeconds": 9_999}}}, "retries.spot.maxDelaySeconds"),
    ({"shares": []}, "shares"),
    ({"shares": {"vision": None}}, "shares.vision"),
    ({"shares": {"vision": {"name": "vision"}}}, "shares.vision.name"),
    ({"shares": {"a b": {}}}, "shares.a b"),
    ({"shares": {"": {}}}, "shares."),
    ({"shares": {"vision": {"lending": "steal"}}}, "shares.vision.lending"),
    ({"shares": {"vision": {"nominal": {P5: 1.0}}}}, f"shares.vision.nominal.{P5}"),
    ({"shares": {"vision": {"nominal": {P5: True}}}}, f"shares.vision.nominal.{P5}"),
    ({"shares": {"vision": {"nominal": {P5: 3}}}}, f"shares.vision.nominal.{P5}"),
    ({"shares": {"vision": {"nominal": {P5: 1}, "lends": {P5: 2}}}}, f"shares.vision.lends.{P5}"),
    ({"shares": {"a": {"nominal": {P5: 1}}, "b": {"nominal": {P5: 2}}}}, f"shares.b.nominal.{P5}"),
    ({"shares": {"vision": {"lending": "reserve", "borrows": {P5: 1}}}}, f"shares.vision.borrows.{P5}"),
    ({"shares": {"vision": {"borrows": {"ml.p9.48xlarge": 1}}}}, "shares.vision.borrows.ml.p9.48xlarge"),
    ({"shares": {"vision": {"weight": -1}}}, "shares.vision.weight"),
    ({"shares": {"vision": {"weight": False}}}, "shares.vision.weight"),
    ({"shares": {"vision": {"weight": 1e13}}}, "shares.vision.weight"),
    ({"shares": {"vision": {"budget": {}}}}, "shares.vision.budget"),
    ({"shares": {"vision": {"budget": {"gpuHours": -1}}}}, "shares.vision.budget.gpuHours"),
    ({"shares": {"vision": {"budget": {"dollars": 1, "periodSeconds": 0}}}}, "shares.vision.budget.periodSeconds"),
    ({"shares": {"vision": {"budget": {"dollars": 1, "whenSpent": "never"}}}}, "shares.vision.budget.whenSpent"),
    ({"shares": {"vision": {"submitters": "arn"}}}, "shares.vision.submitters"),
    ({"shares": {"vision": {"submitters": ["ada"]}}}, "shares.vision.submitters[0]"),
    ({"version": "0"}, "version"),
    ({"version": -1}, "version"),
]


@pytest.mark.parametrize(("document", "field"), WRONG, ids=[f"{n}-{field}" for n, (_, field) in enumerate(WRONG)])
def test_a_wrong_setting_is_refused_by_its_path_and_those_in_force_stay(world, document, field):
    before = world.put("/settings", TWO_SHARES).body
    reply = world.put("/settings", document)
    assert reply.kind == (400, "InvalidRequest", field)
    assert reply.error["message"]
    assert world.get("/settings").body == before
    assert world.publisher.wakes == [0]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_invalid_numbers_are_rejected_with_their_path(world, number):
    body = f'{{"shares": {{"vision": {{"weight": {number}}}}}}}'
    assert world.event("PUT", "/settings", body).kind == (400, "InvalidRequest", "shares.vision.weight")


@examples(40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(policies())
def test_any_settings_that_make_sense_are_taken_and_told_as_they_were(policy):
    world = ApiWorld(pools=pools_of(a_pool(cap=CAP), a_pool(G5, CAP)))
    said = json.loads(json.dumps(settings_document(policy)))
    reply = world.put("/settings", said)
    assert (reply.status, reply.body) == (200, {**said, "version": 1})
    assert world.memory.settings().policy == policy
    SettingsInForce.model_validate(reply.body)


@st.composite
def broken_settings(draw):
    """Good settings with one to three of their places holding something else."""
    document = settings_document(draw(policies()))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(list(places(document))[1:]))
        holder = document
        for key in path:
            holder = holder[key]
        holder[last] = draw(VALUES)
    return document


@examples(100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(broken_settings())
def test_whatever_is_sent_is_taken_or_refused_by_a_field(document):
    world = ApiWorld(pools=pools_of(a_pool(cap=CAP), a_pool(G5, CAP)))
    before = world.get("/settings").body
    reply = world.put("/settings", document)
    if reply.status == 200:
        assert world.get("/settings").body == reply.body
        assert world.put("/settings", reply.body).status == 200
    else:
        assert reply.kind[:2] == (400, "InvalidRequest")
        assert reply.error["field"]
        assert world.get("/settings").body == before


# ---------------------------------------------------------------- the page


def rows(after):
    """First and second cells of the table that follows these words, the first ones' words in backquotes."""
    lines = PAGE[PAGE.index(after) :].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|---"))
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            return
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        yield re.findall(r"`([^`]+)`", cells[0]), cells[1]


def members(model):
    return {field.serialization_alias or field.alias for field in model.model_fields.values()}


def test_the_pages_example_is_taken():
    world = ApiWorld(pools=pools_of(a_pool(cap=8)))
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert world.put("/settings", {**json.loads(text), "version": 0}).status == 200


def test_the_api_takes_what_a_policy_has_and_nothing_else():
    default = settings_document(Policy(shares={"vision": Share(name="vision", budget=Budget())}))
    share, budget = default["shares"]["vision"], default["shares"]["vision"]["budget"]
    schema = Settings.model_json_schema()
    assert members(Settings) == set(schema["properties"]) == {*default, "version"}
    properties = {name: set(part["properties"]) for name, part in schema["$defs"].items() if "properties" in part}
    assert properties == {
        "GittinsSettings": set(default["gittins"]),
        "PreemptionSettings": set(default["preemption"]),
        "ExpansionSettings": set(default["expansion"]),
        "ResizesSettings": set(default["resizes"]),
        "LimitsSettings": set(default["limits"]),
        "ShareSettings": set(share),
        "BudgetSettings": set(budget),
        "RetriesSettings": set(default["retries"]),
        "RetrySettings": set(default["retries"]["spot"]),
    }


def test_the_page_names_every_setting_with_its_default():
    default = settings_document(Policy())
    share = settings_document(Policy(shares={"vision": Share(name="vision", budget=Budget())}))["shares"]["vision"]
    tables = {
        "Numbers are numbers": (default, set(default)),
        "## `preemption`": (default["preemption"], set(default["preemption"])),
        "## `expansion`": (default["expansion"], set(default["expansion"])),
        "## `limits`": (default["limits"], set(default["limits"])),
        "## `resizes`": (default["resizes"], set(default["resizes"])),
        "## `shares`": (share, set(share)),
        "## `budget` of a share": (share["budget"], set(share["budget"])),
    }
    for after, (values, known) in tables.items():
        told = {name: cell for names, cell in rows(after) for name in names}
        assert told.keys() == known
        for name, cell in told.items():
            if re.fullmatch(r"\d+", cell):
                assert values[name] == int(cell), name
    by_class = {name: cell for names, cell in rows("| class | `maxRetries` |") for name in names}
    assert {name: json.loads(cell) for name, cell in by_class.items()} == {
        name: retry["maxRetries"] for name, retry in default["retries"].items()
    }


@pytest.mark.parametrize(
    ("text", "field"), re.findall(r"^\| `(\{.*\})` \| `(.*?)` \|$", PAGE, re.MULTILINE), ids=lambda text: text[:40]
)
def test_the_pages_wrong_settings_are_refused_as_it_says(world, text, field):
    assert world.put("/settings", json.loads(text)).kind == (400, "InvalidRequest", field)


@pytest.mark.parametrize(
    ("wrong", "message", "hint"),
    [
        ({"expansion": True}, "expansion should be an object.", None),
        ({"shares": []}, "shares should be an object.", None),
        (
            {"expansion": {"types": "ml.g5.*"}},
            "expansion.types should be a list.",
            'Write it in brackets: ["a", "b"].',
        ),
    ],
)
def test_a_value_of_another_kind_is_told_in_words_for_people(world, wrong, message, hint):
    error = world.put("/settings", wrong).error
    assert (error["message"], error.get("hint")) == (message, hint)
