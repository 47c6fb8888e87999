"""Write the API's OpenAPI document with all kinds of jobs to docs/reference/openapi.json; with --check, compare it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from trainmaster.bootstrap import Application, Settings
from trainmaster.handlers.api.app import build_app
from trainmaster.handlers.api.kinds import api_kinds
from trainmaster.handlers.api.openapi import document

COMMITTED = Path(__file__).parent.parent / "docs" / "reference" / "openapi.json"


def generated() -> str:
    """Return the document as it is committed. No other setting matters: the application is not used."""
    application = Application(Settings(queue="none", table="none", job_kinds={"image": {}}))
    made = document(build_app(application), api_kinds(application))
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the document; with --check, only compare it."""
    text = generated()
    if "--check" in sys.argv[1:]:
        same = COMMITTED.exists() and COMMITTED.read_text() == text
        print("up to date" if same else f"run {Path(__file__).name}: {COMMITTED} is not what the code says")
        return 0 if same else 1
    COMMITTED.parent.mkdir(parents=True, exist_ok=True)
    COMMITTED.write_text(text)
    print(f"{COMMITTED}: {len(text)} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
