"""Client, command line and worker on CPython 3.10, the oldest Python that they support.

Pyodide has that Python as WebAssembly, so that npm alone installs it. It has no sockets: recorded answers of the fake
API take the network's place, and each command has to print what it prints on the Python of the tests.
"""

import json
import pkgutil
import random
import shutil
import subprocess
from pathlib import Path

import boto3
import httpx
import pytest

from cli_terminal import Terminal
from fake_api import STAGE, FakeApi, starts, waits_for_capacity
from trainmaster import cli, client, worker
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.retry import Retry

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".local" / "python310"
COMMANDS = [
    ["--help"],
    ["ls"],
    ["ls", "--json"],
    ["show", "job1"],
    ["why", "job2"],
    ["pools"],
    ["settings"],
    ["audit"],
    ["doctor", "--help"],
    ["deploy", "--help"],
    ["show", "missing"],
]


class Recorder(httpx.BaseTransport):
    """Passes requests on and keeps what was asked and answered."""

    def __init__(self, app):
        self._inner = httpx.WSGITransport(app=app)
        self.exchanges = []

    def handle_request(self, request):
        response = self._inner.handle_request(request)
        body = response.read().decode()
        self.exchanges.append([request.method, request.url.raw_path.decode(), response.status_code, body])
        return response


def a_queue():
    world = FakeApi()
    world.add("job1", "running", 100)
    world.add("job2", "pending", 5, reason=waits_for_capacity(), **starts("2026-11-20T15:00:00Z"))
    world.add("job3", "failed", failure="the script ended with exit code 1")
    return world


def recorded(arguments):
    """A command's exchanges with the API, and its exit code and output here."""
    recorder = Recorder(a_queue())
    session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    retry = Retry(max_attempts=1, sleep=lambda _: None, rng=random.Random(1))
    with ApiClient(f"https://api{STAGE}", session=session, transport=recorder, retry=retry, environ={}) as api:
        result = Terminal(api)(*arguments)
    return recorder.exchanges, [result.exit_code, result.stdout, result.stderr]


@pytest.fixture(scope="module")
def runs():
    return [recorded(arguments) for arguments in COMMANDS]


@pytest.fixture(scope="module")
def on_python_310(runs):
    if not (HOME / "node_modules").is_dir():
        raise FileNotFoundError("no Python 3.10 in .local/python310: run `make .local/python310/.stamp`")
    given = [[arguments, exchanges] for arguments, (exchanges, _) in zip(COMMANDS, runs, strict=True)]
    folder = ROOT / "tests" / "python310"
    command = [shutil.which("node") or "node", folder / "run.cjs", HOME, ROOT, folder / "program.py"]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_module_can_be_imported(on_python_310):
    assert on_python_310["version"] == [3, 10]
    expected = {
        found.name
        for package in (client, cli, worker)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    }
    missing = expected - set(on_python_310["modules"])
    sdk, batch = "trainmaster.client.sdk", "trainmaster.client.batch"
    beside_an_sdk = {f"{sdk}.v2", f"{sdk}.v3", f"{batch}.training_queue"}
    assert {name for name in missing if ".worker.torch." not in name} == beside_an_sdk


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=[" ".join(each) for each in COMMANDS])
def test_a_command_prints_what_it_prints_on_other_versions(on_python_310, runs, number):
    _, here = runs[number]
    assert here[1] + here[2]
    assert on_python_310["outputs"][number] == here
