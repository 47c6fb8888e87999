"""No name of the API, of the settings or of stored rows goes away without a migration."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import names_snapshot  # noqa: E402 -- a script

KEPT: dict[str, list[str]] = json.loads(names_snapshot.SNAPSHOT.read_text())
FOUND = names_snapshot.names()
REMOVED = (
    "These names are gone or renamed, so clients, files or rows of earlier releases would break. Keep them, or add "
    "a migration (docs/reference/compatibility.md), then run scripts/names_snapshot.py"
)
ADDED = "These names are new: run scripts/names_snapshot.py, so that later releases keep them"


@pytest.mark.parametrize("part", KEPT)
def test_no_name_is_removed_or_renamed(part):
    assert len(KEPT[part]) > 20
    gone = sorted(set(KEPT[part]) - set(FOUND[part]))
    assert not gone, f"{REMOVED}: {gone}"


@pytest.mark.parametrize("part", FOUND)
def test_new_names_are_in_the_snapshot(part):
    new = sorted(set(FOUND[part]) - set(KEPT[part]))
    assert not new, f"{ADDED}: {new}"
