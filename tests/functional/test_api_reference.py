"""docs/reference/api.md, held against the code: routes, reasons, errors, states, parameters, its examples."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from api_world import RESEARCH, ApiWorld
from builders import a_job, a_request, a_running_job, at
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.reasons import REASONS
from trainmaster.handlers.api.app import OPERATIONS
from trainmaster.handlers.api.errors import STATUS
from trainmaster.handlers.models.reasons import Reason

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "reference" / "api.md").read_text()


def table(after):
    """The rows of the first table after these words, as lists of cells."""
    lines = TEXT[TEXT.index(after) :].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|---"))
    rows = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def words(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_every_route_has_its_section():
    headed = re.findall(r"^### (GET|POST|PUT|PATCH|DELETE) (\S+)$", TEXT, re.MULTILINE)
    routes = {(each.method, each.rule.replace("<", "{").replace(">", "}")) for _, each in OPERATIONS.values()}
    assert set(headed) >= routes
    assert len(headed) == len(set(headed))


def test_every_reason_is_there_with_its_members():
    rows = {words(row[0])[0]: words(row[1]) for row in table("### Why it waits")}
    assert rows.keys() == REASONS.keys()
    properties = Reason.model_json_schema(by_alias=True)["properties"]
    for kind, members in rows.items():
        described = {
            name
            for name, field in properties.items()
            if name not in ("type", "message") and re.search(rf"\b{kind}\b", field["description"])
        }
        assert set(members) == described, kind


def test_the_generated_sections_are_up_to_date():
    script = [sys.executable, str(ROOT / "scripts" / "reference.py"), "--check"]
    run = subprocess.run(script, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_error_is_there_with_its_status():
    rows = {(int(row[0]), kind) for row in table("## Errors") for kind in words(row[1])}
    of_the_domain = {(status.value, kind.__name__) for kind, status in STATUS.items()}
    of_http = {
        (404, "RouteNotFound"),
        (405, "MethodNotAllowed"),
        (415, "UnsupportedMediaType"),
        (426, "ClientTooOld"),
        (500, "InternalError"),
    }
    assert rows == of_the_domain | of_http


def test_states_and_outcomes_are_there():
    (line,) = re.findall(r"- \*\*`jobState`\*\*:.*?\n- ", TEXT, re.DOTALL)
    assert set(words(line.removeprefix("- **`jobState`**"))) == {state.value for state in JobState}
    (line,) = re.findall(r"`outcome` \((.*?)\)", TEXT, re.DOTALL)
    assert set(words(line)) == {outcome.value for outcome in Outcome}


def examples():
    return [json.loads(text) for text in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)]


def test_the_examples_are_what_the_api_answers():
    world = ApiWorld()
    world.seed(
        *(a_running_job(f"running-{n}", priority=1) for n in range(2)),
        a_job("job3", priority=1, entry_time=at(-10), submitted_by=RESEARCH),
    )
    job, error = examples()
    assert world.get("/queue").body["jobs"] == [job]
    assert world.post("/plan", a_request(count=3)).body == error
