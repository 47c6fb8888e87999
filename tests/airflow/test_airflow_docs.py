"""The examples of docs/how-to/airflow.md, and the configuration that it names."""

import json
import os
import re
import subprocess
import sys
import threading
from configparser import ConfigParser
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from airflow.providers.amazon.aws.operators.sagemaker import SageMakerTrainingOperator
from airflow_stage import connect
from client_docs import ROOT, blocks
from client_stage import Stage, meanwhile
from client_world import ROLE, request_for

from trainmaster.integrations.airflow import MEMBER
from trainmaster.integrations.connection import QueueConnection

PAGE = "docs/how-to/airflow.md"
DAG_EXAMPLE, ON_KILL = blocks(PAGE)
FACTORY = "trainmaster.integrations.airflow.QueueSessionFactory"
PAGES_ROLE = "arn:aws:iam::111122223333:role/training"


@pytest.mark.slow
def test_the_dag_runs_through_the_queue(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True, timeout=240)
    connect(monkeypatch)
    path = Path(os.environ["AIRFLOW_HOME"]) / "dags" / "train.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(DAG_EXAMPLE.replace(PAGES_ROLE, ROLE))
    dag = run_path(str(path))["dag"]

    def script() -> None:
        stage.world.await_calls("POST", "/add-job", 1)
        (name,) = stage.world.jobs
        stage.asked(name, 3)
        stage.world.start(name)
        stage.asked(name)
        stage.world.end(name)

    with meanwhile(script):
        ran = dag.test()

    (job,) = stage.world.jobs.values()
    assert job["jobName"].startswith("resnet-20")
    assert job["priority"] == 100
    (task,) = ran.get_task_instances()
    assert (task.state, ran.state) == ("success", "success")


def test_killing_the_task_cancels_the_job(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch)
    names: dict[str, Any] = {"SageMakerTrainingOperator": SageMakerTrainingOperator}
    exec(ON_KILL, names)
    operator = names["StoppableTrainingOperator"](
        task_id="train", config=request_for("job1"), print_log=False, check_interval=0.05
    )
    raised: list[BaseException] = []

    def execute() -> None:
        try:
            operator.execute({})
        except Exception as error:  # noqa: BLE001 - handed over to the test
            raised.append(error)

    task = threading.Thread(target=execute)
    task.start()
    stage.world.await_calls("POST", "/add-job", 1)
    operator.on_kill()
    task.join(60)
    assert not task.is_alive()
    assert raised
    assert stage.world.jobs["job1"]["jobState"] == "cancelled"


def block(language: str) -> str:
    (text,) = re.findall(rf"```{language}\n(.*?)```", (ROOT / PAGE).read_text(), re.DOTALL)
    return str(text)


def test_the_extra_of_the_page_is_one_that_the_factory_reads() -> None:
    queue = QueueConnection.parse(json.loads(block("json"))[MEMBER])
    assert queue.api_url == "https://a1b2c3d4e5.execute-api.us-east-1.amazonaws.com/prod"
    assert queue.tags == {"trainmaster:share": "research", "priority": "10"}


def test_the_configured_factory_is_the_one_that_airflow_uses() -> None:
    """Airflow imports it in the middle of the module that it is derived from."""
    program = "from airflow.providers.amazon.aws.hooks.base_aws import SessionFactory; print(SessionFactory)"
    configuration = ConfigParser()
    configuration.read_string(block("ini"))
    environ = os.environ | {"AIRFLOW__AWS__SESSION_FACTORY": configuration["aws"]["session_factory"]}
    ran = subprocess.run([sys.executable, "-c", program], env=environ, stdout=subprocess.PIPE, check=True, timeout=240)
    assert FACTORY in ran.stdout.decode()
