"""Write the tables of this release for the tests: rows as the real stores write them, and what they read from them.

The tables of earlier releases stay as they are, so that tests show that this release reads them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests" / each) for each in ("", "contract", "images", "images/contract")]

import image_table_scenario  # noqa: E402 -- modules of the tests
import table_scenario  # noqa: E402
from table_fixtures import RELEASE, fixture_of, text_of  # noqa: E402

FOLDERS = {
    table_scenario: ROOT / "tests" / "fixtures" / "tables",
    image_table_scenario: ROOT / "tests" / "images" / "fixtures" / "tables",
}


def main() -> int:
    """Write the tables of this release."""
    for scenario, folder in FOLDERS.items():
        _write(scenario, folder / f"{RELEASE}.json")
    return 0


def _write(scenario: ModuleType, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = text_of(fixture_of(scenario))
    path.write_text(text)
    print(f"{path.relative_to(ROOT)}: {len(text)} characters")


if __name__ == "__main__":
    sys.exit(main())
