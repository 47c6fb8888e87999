"""The TorchX scheduler: discovered, and used by TorchX's own runner and components."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.validate import ParamValidator
from torchx.components.dist import ddp
from torchx.runner import Runner, get_runner
from torchx.schedulers import get_scheduler_factories
from torchx.specs import AppDef, AppState, Resource, Role, macros

from conftest import PACKAGING
from fake_api import FakeApi

pytestmark = pytest.mark.filterwarnings("ignore")
CFG: dict[str, Any] = {"role": "arn:aws:iam::123456789012:role/trainer", "output_path": "s3://bucket/out"}


@pytest.fixture
def runner(world: FakeApi, environ: Any) -> Any:
    world.pools["pools"][0]["cap"] = 4
    with get_runner("session") as runner:
        yield runner


def an_app(**changes: Any) -> AppDef:
    about = {"image": "image:1", "entrypoint": "python", "args": ["train.py"], "resource": Resource(8, 2, 65_000)}
    return AppDef("my_app", roles=[Role(**{"name": "trainer", "num_replicas": 3, **about, **changes})])


def submitted(world: FakeApi, runner: Runner, app: AppDef, **cfg: Any) -> tuple[str, dict[str, Any], dict[str, str]]:
    handle = runner.run(app, "trainmaster", CFG | cfg)
    name = handle.rpartition("/")[2]
    request = world.jobs[name]["jobDetails"]
    shape = boto3.client("sagemaker").meta.service_model.operation_model("CreateTrainingJob").input_shape
    report = ParamValidator().validate(request, shape)
    assert not report.has_errors(), report.generate_report()
    for word in request["AlgorithmSpecification"]["ContainerEntrypoint"]:
        assert len(word) <= 256
    assert all(len(value) <= 512 for value in request["Environment"].values())
    return handle, request, {tag["Key"]: tag["Value"] for tag in request["Tags"]}


def test_torchx_discovers_the_scheduler() -> None:
    assert "trainmaster" in get_scheduler_factories()
    assert {"slurm", "local_cwd"} <= set(get_scheduler_factories()), "the others are still there"


def test_an_app_is_a_job_with_the_resources_of_its_role(world: FakeApi, runner: Runner) -> None:
    _, request, tags = submitted(world, runner, an_app(max_retries=2, min_replicas=1), priority=7, share="vision")
    assert request["AlgorithmSpecification"]["TrainingImage"] == "image:1"
    assert request["ResourceConfig"] == {"VolumeSizeInGB": 30}
    assert tags == {
        "priority": "7",
        "torchx:app": "my_app",
        "torchx:role": "trainer",
        "trainmaster:share": "vision",
        "trainmaster:resources": "accelerators=2+vcpus=8+memory_gib=64",
        "trainmaster:instances": "3",
        "trainmaster:min-instances": "1",
        "trainmaster:max-instances": "3",
        "trainmaster:retry-algorithm": "2",
    }


def test_an_instance_type_replaces_the_resources(world: FakeApi, runner: Runner) -> None:
    options = {"instance_type": "ml.p5.48xlarge", "checkpoint_path": "s3://bucket/checkpoints"}
    _, request, tags = submitted(world, runner, an_app(), **options)
    assert request["ResourceConfig"] == {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 3, "VolumeSizeInGB": 30}
    assert request["CheckpointConfig"] == {"S3Uri": "s3://bucket/checkpoints"}
    assert "trainmaster:resources" not in tags


def test_the_state_follows_the_job(world: FakeApi, runner: Runner) -> None:
    handle, request, _ = submitted(world, runner, an_app())
    name = request["TrainingJobName"]
    states = []
    for happens in (lambda: None, lambda: world.start(name), lambda: world.preempt(name), lambda: world.end(name)):
        happens()
        states.append(runner.status(handle).state)
    assert states == [AppState.PENDING, AppState.RUNNING, AppState.PENDING, AppState.SUCCEEDED]
    assert runner.describe(handle).roles[0].num_replicas == 3
    assert [app.app_id for app in runner.list("trainmaster")] == [name]
    assert runner.status("trainmaster://session/unknown") is None


def test_a_cancel_cancels_the_job_and_a_second_one_is_no_error(world: FakeApi, runner: Runner) -> None:
    handle, request, _ = submitted(world, runner, an_app())
    runner.cancel(handle)
    runner.cancel(handle)
    assert world.jobs[request["TrainingJobName"]]["jobState"] == "cancelled"
    assert runner.status(handle).state == AppState.CANCELLED


def run_command(request: dict[str, Any], folder: Path, host: str = "algo-2") -> str:
    """Run a job's command here, with SageMaker's file of hosts in a folder; torchrun prints its arguments."""
    config = {"current_host": host, "hosts": ["algo-1", "algo-2"], "network_interface_name": "eth0"}
    (folder / "resourceconfig.json").write_text(json.dumps(config, indent=1))
    (folder / "torchrun").write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    (folder / "torchrun").chmod(0o755)
    words = request["AlgorithmSpecification"]["ContainerEntrypoint"]
    words = [word.replace("/opt/ml/input/config", str(folder)) for word in words]
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.run(words, env=request["Environment"] | path, capture_output=True, text=True, check=True).stdout


def test_words_reach_the_command_unchanged_and_macros_are_known(world: FakeApi, runner: Runner, tmp_path: Path) -> None:
    args = [
        "-c",
        "import sys; print(sys.argv[1:])",
        "a b",
        "$HOME",
        "it's",
        "",
        "x" * 1200,
        f"n={macros.replica_id}",
        macros.app_id,
    ]
    _, request, _ = submitted(world, runner, an_app(args=args))
    expected = ["a b", "$HOME", "it's", "", "x" * 1200, "n=1", request["TrainingJobName"]]
    assert run_command(request, tmp_path) == f"{expected}\n"


def test_the_ddp_component_meets_at_the_first_instance(world: FakeApi, runner: Runner, tmp_path: Path) -> None:
    app = ddp("--epochs", "3", script="train.py", image="image:1", cpu=8, gpu=2, memMB=1024, j="2x2")
    _, request, tags = submitted(world, runner, app)
    assert tags["trainmaster:instances"] == "2"
    shown = run_command(request, tmp_path).split("\n")
    assert shown[shown.index("--rdzv_endpoint") + 1].startswith("algo-1:")
    assert shown[-4:-1] == ["train.py", "--epochs", "3"]


def test_what_no_training_job_can_be_is_refused(runner: Runner) -> None:
    two = AppDef("two", roles=[an_app().roles[0], an_app(name="other").roles[0]])
    with pytest.raises(ValueError, match="A training job has one role; two has 2"):
        runner.run(two, "trainmaster", CFG)
    with pytest.raises(ValueError, match="at most 3000 fit"):
        runner.run(an_app(args=["x" * 4000]), "trainmaster", CFG)


def test_the_distribution_has_the_plug_in_and_no_package_around_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=PACKAGING / "trainmaster-torchx", check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    assert names == ["torchx_plugins/schedulers/trainmaster.py"]
