"""The routes that the console forwards, beside the API's own document, and what becomes of answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from console_server import serving

from trainmaster.console.app import Options
from trainmaster.console.assets import load_assets
from trainmaster.console.routes import NAME, ROUTES, read_of, route_of

DOCUMENT = json.loads((Path(__file__).parents[3] / "docs" / "reference" / "openapi.json").read_text())


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {'/'.join(route.path)}")
def test_every_route_is_one_of_the_api_with_its_parameters(route):
    operation = DOCUMENT["paths"]["/" + "/".join(route.path)][route.method.lower()]
    known = {each["name"] for each in operation.get("parameters", []) if each["in"] == "query"}
    assert route.query <= known


def test_whatever_is_not_read_is_a_change_or_a_forecast():
    assert {route.method for route in ROUTES if not route.changes} <= {"GET", "POST"}
    assert [route for route in ROUTES if route.method == "POST" and not route.changes and route.path != ("plan",)] == []
    assert all(route.changes for route in ROUTES if route.method in ("PATCH", "DELETE", "PUT"))


def test_a_name_stands_for_one_segment():
    assert route_of("GET", ("jobs", "a-1"))
    assert NAME not in "".join("/".join(route.path).replace(NAME, "") for route in ROUTES)
    assert not route_of("GET", ("jobs", NAME))


def test_a_read_is_written_as_the_page_wrote_it():
    for text in ("/queue", "/jobs?state=running%2Cstarting&limit=100", "/jobs/a-1?why=true"):
        read = read_of(text)
        assert read is not None
        assert read.text == text


ERRORS = [
    ("DELETE /api/jobs/missing", 404, "JobNotFound"),
    ("DELETE /api/jobs/theirs", 403, "AccessDenied"),
    ("DELETE /api/jobs/ended", 409, "IllegalTransition"),
]


@pytest.mark.parametrize(("line", "status", "kind"), ERRORS)
def test_an_error_keeps_its_status_and_its_sentence(console, world, line, status, kind):
    world.add("theirs")
    world.others.add("theirs")
    world.add("ended", "completed")
    answer = console.change(line)
    assert answer.status == status
    assert answer.json["error"]["type"] == kind
    assert set(answer.json["error"]) == {"type", "message", "field", "hint"}


def test_an_api_that_does_not_answer_is_a_bad_gateway(console, world):
    world.outage = [503] * 9
    answer = console.ask("GET /api/queue")
    assert answer.status in (502, 503)
    assert answer.json["error"]["hint"]


def test_a_fault_is_told_without_details(console, world, caplog):
    world.pools = None
    answer = console.ask("GET /api/queue")
    assert answer.status == 500
    assert answer.json["error"]["type"] == "Internal"
    assert "NoneType" not in answer.body.decode()
    assert "NoneType" in caplog.text


def test_a_change_reaches_the_api_with_its_body(console, world):
    answer = console.change("PATCH /api/jobs/job2", {"priority": 7})
    assert answer.json["priority"] == 7
    assert world.calls[-1] == ("PATCH", "/jobs/job2", {"priority": 7})


def test_every_file_of_the_page_is_served_with_its_type(console):
    types = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    for parts, asset in load_assets().items():
        answer = console.ask(f"GET /{'/'.join(parts)}")
        assert answer.body == asset.content
        suffix = "." + parts[-1].rpartition(".")[2]
        assert answer.headers["content-type"].startswith(types.get(suffix, "text/html"))
    assert console.ask("GET /").body == load_assets()["index.html",].content


def test_a_file_that_has_not_changed_is_not_sent_again(console):
    first = console.ask("GET /")
    assert first.headers["cache-control"] == "no-cache"
    again = console.ask("GET /", If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_a_port_that_is_in_use_is_an_error(console, world):
    with pytest.raises(OSError, match="in use"), serving(world, Options(port=console.console.port)):
        pass
