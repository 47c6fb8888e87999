"""`trainmaster plan` for pools that the queue would create: their size and price."""

from __future__ import annotations

import json
from typing import Any

from cli_terminal import Terminal
from fake_api import FakeApi, a_request

MADE = {"pool": "ml.g5.2xlarge.made", "instanceType": "ml.g5.2xlarge", "instances": 2, "dollarsPerHour": 3.03}


def plan(run: Terminal, tmp_path: Any) -> str:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(a_request("new")))
    return run("plan", str(file)).stdout


def test_a_pool_that_would_be_made_is_told_with_its_price(world: FakeApi, run: Terminal, tmp_path: Any) -> None:
    world.planned = {"decision": "start", "wouldCreate": [MADE], "expansionEnabled": True}
    told = "The queue would create the pool ml.g5.2xlarge.made (2 x ml.g5.2xlarge, $3.03 more per hour while in use)"
    assert told in plan(run, tmp_path)


def test_one_that_would_be_if_expansion_were_on_says_so(world: FakeApi, run: Terminal, tmp_path: Any) -> None:
    world.planned = {"wouldCreate": [MADE | {"dollarsPerHour": None}], "expansionEnabled": False}
    told = (
        "With expansion.enabled=true, the queue would create the pool ml.g5.2xlarge.made (2 x ml.g5.2xlarge, "
        "price unknown"
    )
    assert told in plan(run, tmp_path)


def test_where_none_is_made_nothing_is_said(world: FakeApi, run: Terminal, tmp_path: Any) -> None:
    told = plan(run, tmp_path)
    assert told
    assert "would create" not in told


def test_other_pool_changes_are_shown_with_their_maximum_cost(world: FakeApi, run: Terminal, tmp_path: Any) -> None:
    given = {"change": "shrink", "pool": "ml.g6.2xlarge", "before": 4, "after": 1}
    made = {"change": "expand", "pool": MADE["pool"], "before": 0, "after": 2}
    world.planned = {
        "decision": "start",
        "wouldCreate": [MADE],
        "expansionEnabled": True,
        "wouldChange": [made, given],
        "madeDollarsPerHour": {"now": 3.91, "then": 4.01},
    }
    told = "ml.g6.2xlarge would be shrunk (4 -> 1). All managed pools could then cost $4.01 per hour instead of $3.91."
    assert told in " ".join(plan(run, tmp_path).split())
