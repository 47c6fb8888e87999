"""The command line as a real process: exit codes, signals, pipes and terminals, against an API on the loopback."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_api import P5, FakeApi, a_request, an_attempt, served, starts, waits_for_capacity
from hostile_api import HostileApi
from samples import sample

DEADLINE_SECONDS = 60
PROGRAM = (sys.executable, "-m", "trainmaster")
NO_AWS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture
def world() -> FakeApi:
    api = FakeApi()
    api.page_length = 50
    return api


@pytest.fixture
def environ(world: FakeApi) -> Iterator[dict[str, str]]:
    with served(world) as url:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "PYTHONPATH") if name in os.environ}
        yield kept | NO_AWS | {"TRAINMASTER_API_URL": url, "TERM": "xterm-256color"}


def _run(
    environ: dict[str, str], *arguments: str, program: tuple[str, ...] = PROGRAM, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *arguments],
        env=environ,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def _start(environ: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, *arguments], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_job_from_submission_to_its_end(world: FakeApi, environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(a_request("job1")))

    assert _run(environ, "plan", str(file)).stdout.startswith("It would wait at position 3")
    assert _run(environ, "submit", str(file), "--priority", "-2").returncode == 0
    assert _run(environ, "ls").stdout.splitlines()[2].split()[:3] == ["job1", "pending", "-2"]
    assert _run(environ, "why", "job1").stdout.startswith("job1 waits at position 1, with priority -2,")
    assert _run(environ, "hold", "job1").returncode == 0
    assert _run(environ, "release", "job1").returncode == 0
    assert _run(environ, "priority", "job1", "-5").returncode == 0
    assert json.loads(_run(environ, "show", "job1", "--json").stdout)["priority"] == -5
    assert _run(environ, "pools", "set", f"{P5}=3", "--count-external").returncode == 0
    assert json.loads(_run(environ, "pools", "--json").stdout)["pools"][0]["cap"] == 3
    waiting = _start(environ, "wait", "job1", "--interval", "0.1")
    world.await_calls(sum(method == "GET" for method, *_ in world.calls) + 2)
    world.start("job1")
    world.end("job1")
    out, err = waiting.communicate(timeout=DEADLINE_SECONDS)
    assert (waiting.returncode, out) == (0, "job1: Completed.\n")
    assert err.startswith("job1: Waiting in the queue")
    assert _run(environ, "cancel", "job1").returncode == 4
    assert _run(environ, "ls", "--all").stdout.splitlines()[2].split()[:3] == ["job1", "completed", "-5"]


def test_the_installed_program_is_the_same(world: FakeApi, environ: dict[str, str]) -> None:
    world.add("job1")
    installed = (str(Path(sys.executable).with_name("trainmaster")),)
    assert _run(environ, "ls", program=installed).stdout == _run(environ, "ls").stdout
    assert _run(environ, "--help", program=installed).stdout == _run(environ, "--help").stdout


def test_a_request_is_read_from_a_pipe(world: FakeApi, environ: dict[str, str]) -> None:
    request = a_request("job1", HyperParameters={"name": "größer"})
    assert _run(environ, "submit", "-", stdin=json.dumps(request, ensure_ascii=False)).returncode == 0
    assert json.loads(_run(environ, "show", "job1", "--request").stdout) == request


def test_output_piped_between_commands_needs_no_special_encoding(world: FakeApi, environ: dict[str, str]) -> None:
    world.add("job1", jobDetails=a_request("job2", HyperParameters={"name": "größer"}))
    ascii_only = environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    shown = _run(ascii_only, "show", "job1", "--request")
    assert shown.returncode == 0
    assert _run(ascii_only, "submit", "-", stdin=shown.stdout).returncode == 0
    assert world.jobs["job2"]["jobDetails"]["HyperParameters"] == {"name": "größer"}


@pytest.mark.parametrize(
    ("changes", "arguments", "code", "told"),
    [
        ({}, ["show", "nope"], 3, "Error: "),
        ({"AWS_ACCESS_KEY_ID": ""}, ["ls"], 5, "Error: No AWS credentials"),
        ({"TRAINMASTER_API_URL": "http://127.0.0.1:1/prod"}, ["ls"], 6, "Error: Could not connect"),
        (
            {"TRAINMASTER_API_URL": "https:///prod"},
            ["ls"],
            2,
            "Error: 'https:///prod' is not a valid API URL",
        ),
        ({}, ["ls", "--profile", "nope"], 2, "Error: The config profile (nope) could not be found."),
    ],
)
def test_errors_are_one_line_and_a_code(
    environ: dict[str, str], changes: dict[str, str], arguments: list[str], code: int, told: str
) -> None:
    done = _run(environ | changes, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == 1


def test_a_bug_shows_its_traceback_and_has_a_code_of_its_own(world: FakeApi, environ: dict[str, str]) -> None:
    world.jobs["job1"] = {"jobName": "job1"}
    done = _run(environ, "show", "job1")
    assert done.returncode == 70
    assert done.stderr.startswith("Traceback")


def test_ctrl_c_ends_a_wait_with_its_code_and_without_a_traceback(world: FakeApi, environ: dict[str, str]) -> None:
    world.add("job1", "running")
    waiting = _start(environ, "wait", "job1", "--interval", "30")
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == "job1: Running.\n"

    waiting.send_signal(signal.SIGINT)

    out, err = waiting.communicate(timeout=DEADLINE_SECONDS)
    assert (waiting.returncode, out) == (130, "")
    assert err == "Stopped waiting; the jobs continue (`trainmaster cancel job1` cancels a job).\n"


def test_ctrl_c_ends_a_call_that_is_never_answered_with_its_code_and_one_line(environ: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(DEADLINE_SECONDS)
        hanging = _start(environ | {"TRAINMASTER_API_URL": f"http://127.0.0.1:{silent.getsockname()[1]}"}, "ls")
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(4) == b"GET "
            hanging.send_signal(signal.SIGINT)
            out, err = hanging.communicate(timeout=DEADLINE_SECONDS)
    assert (hanging.returncode, out) == (130, "")
    assert err == "Interrupted; a change that was sent may still take effect.\n"


def test_a_reader_that_goes_away_is_no_error(world: FakeApi, environ: dict[str, str]) -> None:
    for number in range(50):
        world.add(f"job{number}")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PROGRAM, "ls"], env=environ, stdout=writer, stderr=subprocess.PIPE, timeout=DEADLINE_SECONDS, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


# -- on a terminal


def _on_terminal(environ: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run it on a pseudo-terminal; gives the exit code and all that was written to it."""
    master, slave = pty.openpty()
    process = subprocess.Popen([*PROGRAM, *arguments], env=environ, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    written = b"".join(iter(lambda: _read(master), b""))
    os.close(master)
    return process.wait(timeout=DEADLINE_SECONDS), written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # what Linux answers when the other end is closed
        return b""


def test_states_have_colors_on_a_terminal_only(world: FakeApi, environ: dict[str, str]) -> None:
    world.add("job1", "running", 1, submittedBy=None, entryTime="2001-01-01T00:00:00Z")
    plain = _run(environ, "ls").stdout
    assert "\x1b" not in plain
    assert plain.splitlines()[2].split()[:3] == ["job1", "running", "1"]

    code, written = _on_terminal(environ, "ls")

    assert code == 0
    assert "\x1b[32mrunning" in written
    assert re.sub(r"\x1b\[[0-9;]*m", "", written).replace("\r\n", "\n") == plain
    for changes in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert _on_terminal(environ | changes, "ls")[1].replace("\r\n", "\n") == plain


@pytest.mark.parametrize("width", sample([60, 120, 80, 100, 200], 2))
def test_a_terminal_of_any_width_shows_the_columns_of_a_pipe_in_lines_that_fit(
    world: FakeApi, environ: dict[str, str], width: int
) -> None:
    name = "llama-3-70b-instruct-finetune-2026-11-20-seed-7-of-the-last-try"
    failure = "AlgorithmError: ExecuteUserScriptError: ExitCode 1, CUDA out of memory " * 3
    world.add(name, "failed", failureReason=failure, endedAt="2026-11-20T12:30:00Z", attempts=[an_attempt(name)])
    world.add("job2", reason=waits_for_capacity(), **starts("2026-11-20T16:00:00Z"))

    piped = _run(environ | {"COLUMNS": str(width)}, "ls", "--all").stdout
    _, written = _on_terminal(environ | {"COLUMNS": str(width), "NO_COLOR": "1"}, "ls", "--all")

    lines = written.replace("\r\n", "\n").splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].split() == piped.splitlines()[0].split() or width < 80
    assert name in piped
    assert failure.strip() in piped


@pytest.mark.parametrize("line", sample(["ls", "wait job1", f"pools drain {P5} --wait"]))
def test_hostile_text_in_answers_never_reaches_a_terminal(line: str) -> None:
    hostile = HostileApi()
    hostile.add(
        "job1", "failed" if line.startswith("wait") else "pending", failureReason="bad", reason=waits_for_capacity()
    )
    with served(hostile) as url:
        _, written = _on_terminal(
            os.environ | NO_AWS | {"TRAINMASTER_API_URL": url, "TERM": "xterm-256color", "COLUMNS": "200"},
            *line.split(),
        )
    assert "owned" in written
    for control in (
        "\x1b]",
        "\x1b[2J",
        "\x1b[8m",
        "\x07",
        "\x9b",
        "\x00",
        "\x7f",
        "\u202e",
        "\u2066",
        "\u200b",
        "\nFAKE",
    ):
        assert control not in written


def test_a_wait_on_a_terminal_draws_in_place(world: FakeApi, environ: dict[str, str]) -> None:
    world.add("job1", "completed")

    code, written = _on_terminal(environ, "wait", "job1", "--interval", "0.1")

    assert code == 0
    assert "\x1b[?25l" in written
    assert written.endswith("job1: Completed.\r\n")
    dumb = _on_terminal(environ | {"TERM": "dumb"}, "wait", "job1")[1]
    assert dumb == "job1: Completed.\r\njob1: Completed.\r\n"
    no_color = _on_terminal(environ | {"NO_COLOR": "1"}, "wait", "job1")[1]
    assert "\x1b[?25l" in no_color
    assert "\x1b[32m" in written
    assert "\x1b[32m" not in no_color


# -- the demo's place


def test_the_demo_takes_our_place_so_that_a_signal_reaches_it_once() -> None:
    program = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
    code = (
        "import sys; from trainmaster.cli.common.context import exec_program; "
        f"exec_program([sys.executable, '-c', {program!r}])"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert int(process.stdout.readline()) == process.pid

    process.terminate()

    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == -signal.SIGTERM
