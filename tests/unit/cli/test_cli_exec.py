"""`trainmaster exec`: its options in this process, and the command's streams, signals and exit status in real ones."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_terminal import Terminal
from fake_api import FakeApi, a_request, served

REQUEST = a_request(
    "job1",
    AlgorithmSpecification={"TrainingImage": "image", "TrainingInputMode": "File"},
    OutputDataConfig={"S3OutputPath": "s3://bucket/out"},
    StoppingCondition={"MaxRuntimeInSeconds": 60},
)
CALL = "import os, urllib.request as r; q = r.Request(os.environ['AWS_ENDPOINT_URL_SAGEMAKER'] + '/', b'%s', {%s}); "
"""Python without boto3, as a program in another language: it prints the answer of CreateTrainingJob."""
CREATE = CALL % (
    json.dumps(REQUEST),
    "'X-Amz-Target': 'SageMaker.CreateTrainingJob', 'Content-Type': 'application/x-amz-json-1.1'",
)
PRINT = "print(r.build_opener(r.ProxyHandler({})).open(q).read().decode())"


@pytest.fixture(scope="module")
def world() -> FakeApi:
    return FakeApi()


@pytest.fixture(scope="module")
def environ(world: FakeApi) -> Iterator[dict[str, str]]:
    others = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TRAINMASTER_"))}
    with served(world) as url:
        yield others | {
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "TRAINMASTER_API_URL": url,
        }


@pytest.fixture
def start(environ: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `trainmaster exec` with some arguments."""
    started: list[subprocess.Popen[str]] = []

    def start_(*arguments: str, **options: Any) -> subprocess.Popen[str]:
        streams: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [sys.executable, "-m", "trainmaster", "exec", *arguments]
        started.append(subprocess.Popen(command, env=environ, text=True, **streams, **options))
        return started[-1]

    yield start_
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def finished(start: Callable[..., Any]) -> Callable[..., tuple[int, str, str]]:
    """Runs `trainmaster exec`; returns exit status, standard output and standard error."""

    def run(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        process = start(*arguments)
        out, err = process.communicate(stdin, timeout=60)
        return process.returncode, out, err

    return run


def test_a_program_in_any_language_uses_the_queue(finished: Callable[..., Any], world: FakeApi) -> None:
    code, out, err = finished("--priority", "4", "--option", "share=vision", "--", sys.executable, "-c", CREATE + PRINT)
    assert (code, list(json.loads(out))) == (0, ["TrainingJobArn"])
    assert (world.jobs["job1"]["priority"], world.jobs["job1"]["share"]) == (4, "vision")
    assert err.splitlines()[0] == "trainmaster: Submitted training job job1 to the queue"
    assert all(line.startswith("trainmaster: ") for line in err.splitlines())


def test_standard_streams_and_the_exit_status_are_the_commands(finished: Callable[..., Any]) -> None:
    script = 'read line; echo "got $line"; echo problem >&2; exit 7'
    assert finished("--quiet", "--", "sh", "-c", script, stdin="a line\n") == (7, "got a line\n", "problem\n")


@pytest.mark.slow
def test_a_command_that_a_signal_ends_has_ended_by_it(finished: Callable[..., Any]) -> None:
    assert finished("--", "sh", "-c", "kill -TERM $$")[0] == -signal.SIGTERM


@pytest.mark.slow
def test_signals_that_python_ignores_end_a_pipe(finished: Callable[..., Any]) -> None:
    """With SIGPIPE ignored, `yes` would report a broken pipe."""
    assert finished("--", "sh", "-c", "yes | head -n 1") == (0, "y\n", "")


TRAP = """
import os, signal, sys
def stop(*_):
    %s
    sys.exit(3)
signal.signal(signal.SIGINT, stop)
print("ready", flush=True)
signal.pause()
"""


def test_ctrl_c_is_the_commands_which_may_still_call(start: Callable[..., Any], world: FakeApi) -> None:
    """The shell sends it to all processes of the terminal; the endpoint answers on until the command has ended."""
    world.jobs.clear()
    process = start("--", sys.executable, "-c", TRAP % (CREATE + PRINT), start_new_session=True)
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, list(world.jobs)) == (3, ["job1"])
    assert "TrainingJobArn" in out


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_nothing_stays_when_the_command_has_ended(start: Callable[..., Any], number: int) -> None:
    process = start("--", "sh", "-c", "echo $AWS_ENDPOINT_URL_SAGEMAKER; exec sleep 60")
    url = process.stdout.readline()
    port = int(url.split(":")[2].split("/")[0])
    assert _listens(port)
    process.send_signal(number)
    process.wait(10)
    end = time.monotonic() + 10
    while _listens(port) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _listens(port)


def _listens(port: int) -> bool:
    """Return whether a process listens on a port of this machine (proc(5))."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


@pytest.mark.slow
def test_the_command_has_no_child_that_is_not_its_own(finished: Callable[..., Any]) -> None:
    """Programs that wait for all their children would wait for the endpoint, which waits for them."""
    assert finished("--", sys.executable, "-c", "import os\ntry: os.wait()\nexcept ChildProcessError: print('none')")[
        1
    ] == ("none\n")


@pytest.mark.slow
def test_descriptors_of_the_shell_reach_the_command_alone(environ: dict[str, str]) -> None:
    """`exec -- cat <(...)`: a pipe ends with its last holder, which must not be the endpoint."""
    reader, writer = os.pipe()
    code = f"import os, time; os.close({writer}); print(os.read({reader}, 9)); print(os.read({reader}, 9))"
    command = [sys.executable, "-m", "trainmaster", "exec", "--", sys.executable, "-c", code]
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, text=True, pass_fds=(reader, writer)
    ) as process:
        os.write(writer, b"words")
        os.close(writer)
        os.close(reader)
        assert process.communicate(timeout=30)[0] == "b'words'\nb''\n"


# -- what is wrong


def test_a_command_that_does_not_exist(finished: Callable[..., Any]) -> None:
    assert finished("--", "no-such-program") == (127, "", "trainmaster exec: no-such-program: command not found\n")


@pytest.mark.slow
def test_a_command_that_is_no_program(finished: Callable[..., Any], tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("words")
    script.chmod(0o755)
    assert finished("--", str(script)) == (126, "", f"trainmaster exec: {script}: Exec format error\n")


@pytest.mark.slow
def test_an_error_of_the_queue_comes_before_the_command(
    environ: dict[str, str], finished: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(environ, "TRAINMASTER_API_URL", "http://elsewhere.example/prod")
    code, out, err = finished("--", "echo", "started")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "unencrypted" in err


@pytest.mark.slow
def test_ctrl_c_ends_the_start(start: Callable[..., Any], environ: dict[str, str], monkeypatch: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setitem(environ, "TRAINMASTER_API_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/prod")
        process = start("--", "echo", "started")
        silent.settimeout(30)
        with silent.accept()[0]:  # it does not answer
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err.count("\n")) == (130, "", 1)


def test_a_command_follows_two_dashes(run: Terminal) -> None:
    for words in (["aws", "s3", "ls"], ["aws", "--region", "eu-west-1"]):
        result = run("exec", *words)
        assert result.exit_code == 2
        assert "put -- before the command" in result.stderr
    assert run("exec").exit_code == run("exec", "--").exit_code == 2
    assert run.started == []


def test_options_of_the_command_are_its_own(run: Terminal) -> None:
    assert run("exec", "--", "aws", "--region", "eu-west-1", "-o", "json", "--", "x").exit_code == 0
    assert run.started == [["aws", "--region", "eu-west-1", "-o", "json", "--", "x"]]
    assert run.started_with is not None
    assert run.started_with["AWS_ENDPOINT_URL_BATCH"].endswith("/batch")


@pytest.mark.parametrize("text", ["", "=share", "name="])
def test_a_name_of_a_batch_queue_is_not_empty(run: Terminal, text: str) -> None:
    result = run("exec", "--batch-queue", text, "--", "true")
    assert result.exit_code == 2
    assert "NAME=SHARE" in result.stderr
