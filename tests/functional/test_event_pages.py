"""The page about events, held against the events of a story: each type, each member, each example."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from builders import ADA, P5
from doc_pages import DOCS, section, table
from elastic_world import EAGER, ElasticWorld
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.events.types import DETAIL_TYPES, NOTIFIED, EventType
from trainmaster.domain.policy.settings import Budget, Order, Share
from trainmaster.domain.requests.notify import NOTIFY_WORDS
from trainmaster.service.change import change, change_settings
from world import BRISK, a_request

PAGE = DOCS / "reference" / "events.md"
EXAMPLES = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)]
OF_EVENTBRIDGE = {"version", "id", "source", "account", "time", "region", "resources", "detail-type", "detail"}
pytestmark = pytest.mark.usefixtures("quiet")


def play() -> list[dict[str, Any]]:
    """Return the details of a story in which most types of events happen."""
    budget = Budget(gpu_hours=1.0, dollars=500.0)
    policy = replace(EAGER, shares={"vision": Share(name="vision", nominal={P5: 4}, budget=budget)})
    world = ElasticWorld(profile=BRISK, pools=f"{P5}=4", policy=policy, published="all")
    pools = [Pool(P5, 4, price=98.32), Pool("ml.g5.2xlarge", 0)]
    change_settings(world.api_context, ADA, lambda stored: (pools, None), None)
    world.submit("first", count=3, training_seconds=60)
    world.elastic("elastic", "restart", max_instances=4, training_seconds=2000)
    world.run(400, step=10)
    urgent = a_request("urgent", count=4, priority=5, training_seconds=1500)
    options = {"share": "vision", "group": "nightly", "notify": "preempted+end"}
    urgent["Tags"] += [{"Key": f"trainmaster:{key}", "Value": value} for key, value in options.items()]
    world.submit_request(urgent)
    world.submit("later")
    change(world.api_context, ADA, "later", hold=True)
    change(world.api_context, ADA, "later", hold=False)
    change_settings(world.api_context, ADA, lambda stored: (None, replace(policy, order=Order.FIFO)), None)
    world.submit("wide", count=4, training_seconds=20)
    for cap in (3, 4):
        change_settings(world.api_context, ADA, lambda stored, cap=cap: ([replace(pools[0], cap=cap)], None), None)
        world.run(60, step=10)
    world.run_until_ended("elastic", "urgent", "later", "wide")
    world.check_events("first", "elastic", "urgent", "later", "wide")
    return world.bus.details


@pytest.fixture(scope="module")
def details() -> list[dict[str, Any]]:
    return play()


def kinds(value: Any) -> Any:
    """The types of an example's values; of objects whose keys are names, the types alone."""
    return {key: type(each).__name__ for key, each in value.items()}


def test_the_page_lists_every_type_with_its_detail_type():
    rows = {row[0].strip("`"): row[1].strip("`") for row in table(PAGE.read_text(), "`type`")}
    assert rows == {each.value: DETAIL_TYPES[each] for each in EventType}


def test_the_story_has_most_types(details):
    assert {each["type"] for each in details} >= {*EventType} - {EventType.REQUEUED}


def test_every_detail_type_has_an_example():
    assert {example["detail-type"] for example in EXAMPLES} == set(DETAIL_TYPES.values())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each["detail"]["type"])
def test_an_example_has_the_members_of_an_event(example, details):
    assert set(example) == OF_EVENTBRIDGE
    detail = example["detail"]
    assert example["detail-type"] == DETAIL_TYPES[EventType(detail["type"])]
    alike = [kinds(each) for each in details if each["type"] == detail["type"]]
    seen = {key: kind for each in alike for key, kind in each.items()}
    assert kinds(detail).items() <= seen.items(), "the example has something that no event has"
    always = set.intersection(*(set(each) for each in alike))
    assert always <= set(detail), "every such event has these"


def test_the_page_explains_every_member(details):
    text = section(PAGE, "Detail")
    for name in {name for each in details for name in each}:
        assert f"| `{name}`" in text or f"`{name}`" in text, name


def test_each_word_for_notifications_names_a_type_and_is_on_its_page():
    assert set(NOTIFY_WORDS) == set(NOTIFIED)
    page = (DOCS / "how-to" / "notifications.md").read_text()
    assert all(f"`{word}`" in page for word in NOTIFY_WORDS)
