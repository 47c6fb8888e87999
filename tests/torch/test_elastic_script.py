"""The example script in real containers: trainmaster-run, torchrun, gloo, and a rendezvous in a DynamoDB engine."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from trainmaster.adapters.clock import SystemClock
from trainmaster.adapters.dynamodb_rendezvous import DynamoGroups
from trainmaster.adapters.dynamodb_table import Table
from trainmaster.domain.rendezvous import Control

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "elastic_ddp.py"
PATIENCE = 240
"""Seconds: on a busy machine an import of torch may take half a minute, and a step of a test has two or three."""
QUICK = "--rdzv-conf=interval=1,attempts=4,poll=0.3,last_call=1,gather=0.3"
SLOW_TO_NOTICE = "--rdzv-conf=interval=15,attempts=6,poll=0.3,last_call=1,gather=0.3"


class Container:
    """One container on an address of its own; what its script says, line by line."""

    def __init__(self, root, number, environ, *options):
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
                [sys.executable, "-m", "trainmaster.worker.run", "--nproc-per-node=1", *options, str(EXAMPLE)],
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
    return DynamoGroups(Table(client, table, time.sleep), SystemClock())


@pytest.fixture
def containers(client, table, tmp_path):
    made = []
    environ = {
        "AWS_ENDPOINT_URL_DYNAMODB": client.meta.endpoint_url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "TRAINMASTER_HOOK": "members",
        "TRAINMASTER_RUN": "bert",
        "TRAINMASTER_TABLE": table,
        "TRAINMASTER_MIN": "1",
        "TRAINMASTER_MAX": "3",
        "TRAINMASTER_GRACE": "30",
        "SM_HP_CHECKPOINTS": str(tmp_path / "checkpoints"),
        "SM_HP_SAVE_EVERY": "1000000",
        "SM_HP_STEPS": "1000000",
        "SM_HP_SECONDS": "0.02",
        "OMP_NUM_THREADS": "1",
    }

    def start(number, *options, **more):
        made.append(Container(tmp_path, number, environ | more, *options))
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


def alone(steps, tmp_path):
    """What the script says when one process runs it by hand."""
    answer = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        env={**os.environ, "SM_HP_STEPS": str(steps), "SM_HP_CHECKPOINTS": str(tmp_path / "alone")},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return [json.loads(line) for line in answer.stdout.splitlines()]


def test_a_job_grows_and_shrinks_without_losing_a_step_and_with_the_losses_of_one_process(containers, groups, tmp_path):
    base = containers(1, QUICK)
    until(lambda: len(base.steps) > 20)
    member = containers(2, QUICK)
    until(lambda: base.steps[-1]["world"] == 2)
    grown = len(base.steps)
    until(lambda: len(base.steps) > grown + 20)
    groups.direct("bert", Control(epoch=1, least=1, most=1, drain=("bert-qstamp-1-m2",), grace=60.0))
    assert member.ends() == 0, "a drained member ends in peace"
    until(lambda: base.steps[-1]["world"] == 1)
    base.stop()
    assert base.ends() == 0, "one that is stopped has saved, and left"
    assert groups.group("bert").nodes == ()
    assert [line["step"] for line in base.steps] == list(range(1, len(base.steps) + 1)), "no step lost or done twice"
    assert [round_ for round_, _ in itertools.groupby(line["round"] for line in base.steps)] == [1, 2, 3]
    expected = alone(len(base.steps), tmp_path)
    worst = max(abs(one["loss"] - other["loss"]) for one, other in zip(base.steps, expected, strict=True))
    assert worst < 1e-6, "the batches are the same in every world"


@pytest.mark.slow
def test_a_stop_while_a_node_waits_for_others_takes_it_out(containers, groups):
    one = containers(1, QUICK, TRAINMASTER_MIN="2")
    until(lambda: (found := groups.group("bert")) is not None and found.nodes)
    one.stop()
    assert one.ends() == 143
    assert groups.group("bert").nodes == ()
    assert not one.failure.exists(), "a stop that was asked for is no failure"


@pytest.mark.slow
def test_a_node_whose_agent_is_killed_is_taken_out_at_once(containers):
    base = containers(1, SLOW_TO_NOTICE)
    until(lambda: base.steps)  # it has the first rank, which is the one that tells
    member = containers(2, SLOW_TO_NOTICE)
    until(lambda: base.steps[-1]["world"] == 2)
    began = time.monotonic()
    (agent,) = children_of(member.process.pid)
    os.kill(agent, signal.SIGKILL)
    assert member.ends() == 137
    assert "exit code 137" in member.failure.read_text()
    until(lambda: base.steps[-1]["world"] == 1)
    assert time.monotonic() - began < 60, "without it the others would see it after a minute and a half"


def children_of(pid):
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_a_spent_budget_ends_the_job_with_its_reason(containers):
    budget = json.dumps({"before_full": 1, "period": 3600})
    one = containers(1, QUICK, SM_HP_BATCH="0", TRAINMASTER_RESTARTS=budget)
    assert one.ends() == 1
    assert one.failure.read_text().startswith("trainmaster: full restart: 2 restarts")
