"""Containers of an elastic job on this machine: example scripts below trainmaster-run, with a DynamoDB engine.

For environments that have of ours what a container has. Their conftest imports the fixtures, and says which `script`.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.contract.engines import Dynoxide, make_table

from trainmaster.adapters.clock import SystemClock
from trainmaster.adapters.dynamodb.rendezvous.control import DynamoRendezvousControl
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.elastic import rendezvous as domain
from trainmaster.worker.rendezvous import run as worker

EXAMPLES = Path(__file__).parent.parent / "examples"
PATIENCE = 240
"""Seconds: on a busy machine an import of torch may take half a minute, and a step of a test has two or three."""
ROLE, KEY = "arn:aws:iam::111122223333:role/training", "secret"
RUN, RUN_OF_NODES = domain.Run("bert", ROLE), worker.Run("bert", KEY, ROLE)
"""The rendezvous to the queue, and to its nodes."""
_tables = itertools.count(1)


@pytest.fixture(scope="session")
def engine():
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("Dynoxide is built for Linux on x86_64 only; CI proves the rest there")
    engine = Dynoxide()
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def client(engine):
    client = engine.client()
    yield client
    client.close()


@pytest.fixture
def table(client):
    """The name of a new table."""
    name = f"rendezvous-{os.getpid()}-{next(_tables)}"
    make_table(client, name)
    return name


class Container:
    """One container on an address of its own; what its script says, line by line."""

    def __init__(self, root, number, environ, *command):
        self.base = root / f"container-{number}"
        config = self.base / "input" / "config"
        config.mkdir(parents=True)
        resources = {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}
        (config / "resourceconfig.json").write_text(json.dumps(resources))
        about = {
            "SM_BASE_DIR": str(self.base),
            "TRAINING_JOB_NAME": "bert" if number == 1 else f"bert-qstamp-1-m{number}",
            "TRAINMASTER_LOCAL_ADDR": f"127.0.1.{number}",
        }
        with (self.base / "stderr").open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "trainmaster.worker.container.run", *command],
                env={**os.environ, **environ, **about},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.steps = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        with self.process.stdout as lines:
            for line in lines:
                if line.startswith("{"):
                    self.steps.append(json.loads(line))

    @property
    def failure(self):
        return self.base / "output" / "failure"

    def stop(self):
        self.process.send_signal(signal.SIGTERM)

    def ends(self):
        code = self.process.wait(PATIENCE)
        self.reader.join(10)
        return code


@pytest.fixture
def groups(client, table):
    """The queue's side."""
    return DynamoRendezvousControl(Table(client, table, time.sleep), SystemClock(), lambda _: KEY)


@pytest.fixture
def containers(client, table, tmp_path, script):
    made = []
    environ = {
        "AWS_ENDPOINT_URL_DYNAMODB": client.meta.endpoint_url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "TRAINMASTER_HOOK": "members",
        "TRAINMASTER_RUN": "bert",
        "TRAINMASTER_RENDEZVOUS_TABLE": table,
        "TRAINMASTER_RENDEZVOUS_ROLE": ROLE,
        "TRAINMASTER_RENDEZVOUS_KEY": KEY,
        "TRAINMASTER_MIN": "1",
        "TRAINMASTER_MAX": "3",
        "TRAINMASTER_GRACE": "30",
        "SM_HP_CHECKPOINTS": str(tmp_path / "checkpoints"),
        "SM_HP_SAVE_EVERY": "1000000",
        "SM_HP_STEPS": "1000000",
        "SM_HP_SECONDS": "0.05",
        "OMP_NUM_THREADS": "1",
    }

    def start(number, *options, **more):
        made.append(Container(tmp_path, number, environ | more, *options, str(script)))
        return made[-1]

    yield start
    for one in made:
        one.process.kill()
        one.process.wait()
        one.reader.join(30)
        sys.stdout.write((one.base / "stderr").read_text()[-3000:])


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.05)


def alone(script, steps, tmp_path):
    """Output of the script when one process runs it by hand."""
    answer = subprocess.run(
        [sys.executable, str(script)],
        env={
            **os.environ,
            "SM_HP_STEPS": str(steps),
            "SM_HP_CHECKPOINTS": str(tmp_path / "alone"),
            "OMP_NUM_THREADS": "1",  # threads that wait for each other need all cores
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return [json.loads(line) for line in answer.stdout.splitlines()]
