"""Imports of the Lambda functions of image jobs: they answer requests and messages, and never make a plan."""

from __future__ import annotations

import subprocess
import sys

NEVER_PLAN = {"trainmaster.images.handlers.intake", "trainmaster.images.handlers.regions"}
AT_THE_DOOR = {
    "trainmaster.planner",
    "trainmaster.planner.sharing",
    "trainmaster.planner.sharing.limits",
    "trainmaster.planner.expansion",
    "trainmaster.planner.expansion.guardrails",
}
"""Modules for admission itself: spent budgets, and pools that could still be made."""


def test_functions_without_plans_do_not_load_the_planner():
    program = f"import {', '.join(NEVER_PLAN)}, sys; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(found.stdout.split())
    assert loaded >= NEVER_PLAN
    assert {name for name in loaded if name.startswith("trainmaster.planner")} <= AT_THE_DOOR
