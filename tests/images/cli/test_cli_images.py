"""Image jobs on the command line: submitted like any other, shown with their regions, waited for with a bar."""

import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from cli_terminal import NOW, Terminal
from fake_api import FakeApi, a_view, an_attempt
from hostile_api import HostileApi
from image_fake_api import ImageFakeApi, an_image
from trainmaster.cli.output.progress import LiveTable
from trainmaster.client.api.client import ApiClient

POOL = "endpoint/ships/AllTraffic"


def a_body(**members: Any) -> dict[str, Any]:
    processor = {"name": "ships", "type": "SM_ENDPOINT"}
    return {"jobId": "harbour-7", "imageUrls": ["s3://images/a.tif"], "imageProcessor": processor} | members


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "image.json"
    path.write_text(json.dumps(a_body()))
    return path


def running(world: FakeApi, done: int = 12, failed: int = 1) -> None:
    attempt = an_attempt("harbour-7", units={POOL: 72}, trainingJobName="image:harbour-7")
    world.add("harbour-7", "running", demand=[{POOL: 120}], attempts=[attempt], **an_image(done, failed))


def test_submit_knows_an_image_request_by_its_members(world: FakeApi, run: Terminal, file: Path) -> None:
    result = run("submit", str(file))
    assert (result.exit_code, result.stdout) == (
        0,
        "Received harbour-7: its image is read first; then the job waits in the queue.\n",
    )
    assert world.calls == [("POST", "/image-jobs", a_body())]


def test_priority_and_share_of_the_command_line_replace_those_of_the_request(world: FakeApi, run: Terminal) -> None:
    body = json.dumps(a_body(trainmaster={"priority": 1, "share": "old"}))
    result = run("submit", "-", "--priority", "5", "--option", "share=vision", stdin=body)
    assert result.exit_code == 0
    assert world.calls[0][2]["trainmaster"] == {"priority": 5, "share": "vision"}


def test_wishes_that_are_no_object_are_refused_before_anything_is_sent(world: FakeApi, run: Terminal) -> None:
    result = run("submit", "-", "--priority", "5", stdin=json.dumps(a_body(trainmaster="fast")))
    assert (result.exit_code, world.calls) == (2, [])
    assert "The member trainmaster is not an object" in result.stderr


def test_ignored_members_are_reported_as_warnings(world: FakeApi, run: Terminal) -> None:
    result = run("submit", "-", "--json", stdin=json.dumps(a_body(color="red")))
    assert json.loads(result.stdout)["state"] == "received"
    assert result.stderr == "Warning: color has no effect here and is ignored.\n"


def test_a_request_that_is_refused_is_told_with_its_field(world: FakeApi, run: Terminal) -> None:
    result = run("submit", "-", stdin=json.dumps(a_body(imageUrls=[])))
    assert result.exit_code == 2
    assert result.stderr == "Error: imageUrls is missing. Add it.\n"


def test_the_same_request_again_tells_how_its_job_stands(world: FakeApi, run: Terminal, file: Path) -> None:
    running(world)
    assert run("submit", str(file)).stdout == "harbour-7 is there already: running.\n"


def test_submit_waits_until_the_image_was_looked_at_and_then_for_the_end(
    world: FakeApi, run: Terminal, file: Path
) -> None:
    run.meanwhile = [
        lambda: None,
        lambda: world.add("harbour-7", **an_image()),
        lambda: running(world, done=0, failed=0),
        lambda: running(world, done=30, failed=0),
        lambda: world.end("harbour-7"),
    ]
    result = run("submit", str(file), "--wait", "--interval", "60")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "harbour-7: Completed."
    assert result.stderr.splitlines() == [
        "harbour-7: Waiting in the queue.",
        "harbour-7: Running; 0 of 30 regions done.",
        "harbour-7: Running; 30 of 30 regions done.",
        "harbour-7: Completed.",
    ]


def test_a_request_that_never_becomes_a_job_is_told_where_to_look(run: Terminal, file: Path) -> None:
    run.meanwhile = [lambda: None] * 100
    result = run("submit", str(file), "--wait")
    assert result.exit_code == 3
    assert "image dead-letter queue" in result.stderr
    assert run.seconds == 180


def test_wait_tells_a_line_for_regions_that_are_done(world: FakeApi, run: Terminal) -> None:
    running(world, done=12, failed=0)
    run.meanwhile = [
        lambda: running(world, done=29, failed=1),
        lambda: world.end("harbour-7", "failed", "1 of 30 regions failed: the model answered 400"),
    ]
    result = run("wait", "harbour-7", "--interval", "60")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "harbour-7: Running; 12 of 30 regions done.",
        "harbour-7: Running; 29 of 30 regions done, 1 failed.",
        "harbour-7: Failed; 29 of 30 regions done, 1 failed; 1 of 30 regions failed: the model answered 400.",
    ]


def test_wait_draws_a_bar_of_regions_and_none_for_other_jobs() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    jobs = [a_view("harbour-7", "running", **an_image(done=15)), a_view("job1", "running")]
    with console.capture() as captured:
        console.print(LiveTable(console, lambda: NOW).renderable(jobs))
    head, image, training = captured.get().splitlines()
    assert "Regions" in head
    # Half of its 20 signs; without colors the rest is blank.
    assert image.count("━") == 10
    assert "15/30 regions" in image
    assert "━" not in training


def test_show_tells_the_endpoint_and_the_regions(world: FakeApi, run: Terminal) -> None:
    running(world)
    lines = {line.split("  ")[0].strip(): line for line in run("show", "harbour-7").stdout.splitlines()}
    assert lines["Endpoint"].endswith("ships, variant AllTraffic")
    assert lines["Regions"].endswith("12 of 30 regions done, 1 failed, 270 tiles in all")
    assert lines["Load"].endswith("120 requests at once, 72 of them left")


def test_show_and_why_tell_when_a_running_image_is_expected_to_be_done(world: FakeApi, run: Terminal) -> None:
    running(world)
    assert "Expected End" not in run("show", "harbour-7").stdout
    assert "expected to be done" not in run("why", "harbour-7").stdout
    world.jobs["harbour-7"]["expectedEnd"] = world.jobs["harbour-7"]["details"]["expectedEnd"] = "2026-11-20T13:30:00Z"
    (line,) = [line for line in run("show", "harbour-7").stdout.splitlines() if line.startswith("Expected End")]
    assert "13:30" in line
    assert "It is expected to be done at" in run("why", "harbour-7").stdout


def test_show_tells_of_a_job_whose_results_are_kept_nowhere(world: FakeApi, run: Terminal) -> None:
    world.add("harbour-7", jobDetails=a_body(outputs=[]), **an_image())
    (line,) = [line for line in run("show", "harbour-7").stdout.splitlines() if line.startswith("Results")]
    assert line.endswith("not stored: the request names no outputs")
    for kept in ({"outputs": [{"type": "S3", "bucket": "results"}]}, {"outputBucket": "results"}):
        world.add("harbour-8", jobDetails=a_body(**kept), **an_image())
        assert "kept nowhere" not in run("show", "harbour-8").stdout


def test_ls_wide_has_a_column_for_regions_only_where_there_are_image_jobs(world: FakeApi, run: Terminal) -> None:
    world.add("job1", "running", attempts=[an_attempt("job1")])
    assert "regions" not in run("ls", "--wide").stdout
    running(world, failed=0)
    assert "12/30 regions" in run("ls", "--wide").stdout


def test_why_tells_how_far_an_image_job_is(world: FakeApi, run: Terminal) -> None:
    running(world)
    text = run("why", "harbour-7").stdout
    assert f"on 72 x {POOL}, as attempt 1. 12 of 30 regions done, 1 failed." in text
    world.move("harbour-7", "preempting", "preempted for job4")
    assert "to continue with the remaining regions" in run("why", "harbour-7").stdout
    world.move("harbour-7", "starting", "decided")
    assert "SageMaker" not in run("why", "harbour-7").stdout


@pytest.mark.parametrize("command", [("cancel",), ("hold",), ("priority", "7")])
def test_other_commands_know_no_difference(world: FakeApi, run: Terminal, command: tuple[str, ...]) -> None:
    world.add("harbour-7", **an_image())
    verb, *rest = command
    assert run(verb, "harbour-7", *rest).exit_code == 0


def test_a_plan_of_an_image_job_says_the_size_of_its_image(world: FakeApi, run: Terminal, file: Path) -> None:
    world.planned = {"decision": "start", "position": 1, "wouldTake": {POOL: 8}, "wouldStart": ["harbour-7"]}
    result = run("plan", str(file), "--priority", "3", "--image-size", "20480x10240")
    assert result.stdout == f"It would start immediately on 8 x {POOL}.\n"
    assert world.calls == [("POST", "/plan", a_body(imageSize=[20480, 10240], trainmaster={"priority": 3}))]


@pytest.mark.parametrize("size", ["20480", "20480x", "axb", "1x2x3", "-1x5"])
def test_a_size_that_is_none_is_refused_before_anything_is_sent(
    world: FakeApi, run: Terminal, file: Path, size: str
) -> None:
    result = run("plan", str(file), f"--image-size={size}")
    assert (result.exit_code, world.calls) == (2, [])
    assert "WIDTHxHEIGHT" in result.stderr


REFUSED = "There is no job harbour-7. A request of that name was refused at 2026-11-20T13:00:00Z: There are 2 images."


@pytest.mark.parametrize("command", ["show", "wait", "why"])
def test_looking_up_a_rejected_request_reports_the_rejection(world: FakeApi, run: Terminal, command: str) -> None:
    world.refused["harbour-7"] = REFUSED
    result = run(command, "harbour-7")
    assert result.exit_code == 3
    assert result.stderr.startswith(f"Error: {REFUSED}")


def test_submit_waits_no_longer_once_the_request_is_refused(world: FakeApi, run: Terminal, file: Path) -> None:
    run.meanwhile = [lambda: None, lambda: world.refused.update({"harbour-7": REFUSED})]
    result = run("submit", str(file), "--wait")
    assert (result.exit_code, run.seconds) == (3, 10)
    assert f"Error: {REFUSED}" in result.stderr


def test_an_old_rejection_does_not_end_the_wait_for_a_corrected_request(
    world: FakeApi, run: Terminal, file: Path
) -> None:
    world.refused["harbour-7"] = REFUSED
    run.meanwhile = [lambda: None, lambda: world.add("harbour-7", **an_image()), lambda: world.end("harbour-7")]
    assert run("submit", str(file), "--wait").exit_code == 0


class HostileImageApi(HostileApi, ImageFakeApi):
    """A hostile API that takes image jobs."""


@pytest.mark.parametrize("arguments", [("ls", "--wide"), ("show", "harbour-7"), ("why", "harbour-7"), ("submit", "-")])
def test_hostile_text_in_image_jobs_has_no_effect(client: ApiClient, arguments: tuple[str, ...]) -> None:
    hostile = HostileImageApi()
    running(hostile)
    hostile.jobs["harbour-7"]["details"]["expectedEnd"] = "2026-11-20T14:00:00Z"
    transport: Any = httpx.WSGITransport(app=hostile)
    with ApiClient("https://api/prod", session=client.session, transport=transport, environ={}) as api:
        result = Terminal(api)(*arguments, stdin=json.dumps(a_body(color="red")))
    assert result.exit_code == (7 if "submit" in arguments else 0), "a state that is not received"
    assert result.output.replace("\n", "").isprintable()
    assert "loud" in result.output
    assert "\nFAKE" not in result.output
