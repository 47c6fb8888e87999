"""Write the names that users and stored rows depend on to tests/fixtures/names.json; with --check, compare it.

A name that is there and no longer in the code breaks a client, a settings file or a stored row.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SNAPSHOT = ROOT / "tests" / "fixtures" / "names.json"
_OPENAPI = ROOT / "docs" / "reference" / "openapi.json"
_TABLES = ("tests/fixtures/tables", "tests/images/fixtures/tables")
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "contract")]

from table_fixtures import RELEASE, row_of_text, shape  # noqa: E402 -- modules of the tests


def names() -> dict[str, list[str]]:
    """Return the names by part: routes, members and values of the API (with the settings), and stored rows."""
    document = json.loads(_OPENAPI.read_text())
    schemas = document["components"]["schemas"]
    return {
        "routes": sorted(_routes(document["paths"])),
        "members": sorted(f"{name}{each}" for name, schema in schemas.items() for each in _members(schema)),
        "rows": sorted({name for row in _rows() for name in shape(row)}),
    }


def _routes(paths: dict[str, Any]) -> Iterator[str]:
    for path, item in paths.items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}"
            for parameter in operation.get("parameters", []):
                yield f"{method.upper()} {path} {parameter['in']} {parameter['name']}"


def _members(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the members and the listed values of a schema; required members of requests may not become more."""
    yield ""
    for name, member in schema.get("properties", {}).items():
        yield f".{name}"
        yield from (f".{name} = {value}" for value in _values(member))
    yield from (f" = {value}" for value in schema.get("enum", []))


def _values(member: dict[str, Any]) -> Iterator[Any]:
    yield from member.get("enum", [])
    for each in (*member.get("anyOf", []), *([member["items"]] if isinstance(member.get("items"), dict) else [])):
        yield from _values(each)


def _rows() -> Iterator[dict[str, Any]]:
    for folder in _TABLES:
        for row in json.loads((ROOT / folder / f"{RELEASE}.json").read_text())["rows"]:
            yield row_of_text(row)


def main() -> int:
    """Write the snapshot; with --check, only compare it."""
    made = json.dumps(names(), indent=0, ensure_ascii=False) + "\n"
    if "--check" in sys.argv[1:]:
        same = SNAPSHOT.exists() and SNAPSHOT.read_text() == made
        print("up to date" if same else f"run {Path(__file__).name}: {SNAPSHOT} is not what the code says")
        return 0 if same else 1
    SNAPSHOT.write_text(made)
    print(f"{SNAPSHOT.relative_to(ROOT)}: {len(made)} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
