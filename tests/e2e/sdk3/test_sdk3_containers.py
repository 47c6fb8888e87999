"""Entry points of SDK 3 programs, run by the deployed local stack: what the SDK uploads is found and executed."""

import io
import json
import re
import shutil
import tarfile
import time
from pathlib import Path
from typing import Any

import boto3
import pytest
from client_docs import blocks, run_as_program
from sagemaker.core.helper.session_helper import get_execution_role
from sagemaker.core.utils.exceptions import FailedStatusError
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import Compute, InputData, SourceCode
from sagemaker.train.distributed import MPI, DistributedConfig, Torchrun

from trainmaster import QueueSession

pytestmark = pytest.mark.usefixtures("deployed")
DOCUMENTED = "ml.p5.48xlarge"
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/mine:1"
NAME = f"sdk3c-{int(time.time())}"
TRAIN = """
import argparse, json, os, pathlib, sys
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
arguments, _ = parser.parse_known_args()
data = sorted(os.listdir("/opt/ml/input/data/train"))
result = {"epochs": arguments.epochs, "data": data, "rank": os.environ.get("RANK")}
if "RANK" in os.environ:
    import torch, torch.distributed
    torch.distributed.init_process_group("gloo")
    total = torch.ones(1)
    torch.distributed.all_reduce(total)
    torch.distributed.destroy_process_group()
    result["sum"] = total.item()
pathlib.Path("/opt/ml/model", "result-" + os.environ.get("RANK", "0") + ".json").write_text(json.dumps(result))
"""


@pytest.fixture
def session(deployed: None) -> Any:
    return QueueSession()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "packages.txt").write_text("")
    (tmp_path / "data.csv").write_text("1,2")
    return folder


def train(session: Any, name: str, source: Path, instances: int = 1, **changes: Any) -> dict[str, dict[str, Any]]:
    """Train to the end; gives what the entry point has left, by file."""
    code = {"source_dir": str(source), "entry_script": "train.py"} | changes.pop("source_code", {})
    trainer = ModelTrainer(
        training_image=IMAGE,
        role=get_execution_role(),
        base_job_name=f"{NAME}-{name}",
        source_code=SourceCode(**{key: value for key, value in code.items() if value is not None}),
        compute=Compute(instance_type=DOCUMENTED, instance_count=instances),
        hyperparameters={"epochs": 3},
        sagemaker_session=session,
        **changes,
    )
    trainer.train([InputData(channel_name="train", data_source=str(source.parent / "data.csv"))], logs=False)
    bucket, _, key = trainer._latest_training_job.model_artifacts.s3_model_artifacts.removeprefix("s3://").partition(
        "/"
    )
    body = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        read = {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]
    return {name: json.loads(text) for name, text in read.items()}


def test_the_example_of_the_readme_runs_as_it_stands(session: Any, tmp_path: Path) -> None:
    (example,) = blocks("README.md")
    assert "ModelTrainer" in example
    run_as_program(example, tmp_path)
    (checkpoints,) = re.findall(r's3_uri="s3://([^"]*)"', example)
    bucket, _, prefix = checkpoints.partition("/")
    step = boto3.client("s3").get_object(Bucket=bucket, Key=f"{prefix}/step")["Body"].read()
    assert step == b"100"


def test_the_remote_function_of_the_quickstart_runs_as_it_stands(tmp_path: Path) -> None:
    (example,) = [block for block in blocks("docs/quickstart.md") if "sagemaker.core" in block]
    assert "2 + 3 = 5\n" in run_as_program(example, tmp_path)


@pytest.mark.slow
def test_an_executor_returns_results_and_raises_what_a_function_raises(session: Any) -> None:
    from sagemaker.core.remote_function import RemoteExecutor  # its import needs the Region that a fixture sets

    def divide(a: int, b: int) -> float:
        return a / b

    options = {"instance_type": DOCUMENTED, "image_uri": IMAGE, "sagemaker_session": session}
    with RemoteExecutor(max_parallel_jobs=2, **options) as executor:
        results = [executor.submit(divide, 6, each) for each in (2, 0)]
        assert results[0].result() == 3
        with pytest.raises(ZeroDivisionError):
            results[1].result()


@pytest.mark.slow
def test_source_code_from_this_machine_with_requirements(session: Any, source: Path) -> None:
    left = train(session, "local", source, source_code={"requirements": "packages.txt"})
    assert left == {"result-0.json": {"epochs": 3, "data": ["data.csv"], "rank": None}}


@pytest.mark.slow
def test_source_code_from_s3_with_a_command(session: Any, source: Path) -> None:
    uri = f"s3://{session.default_bucket()}/{NAME}/source"
    session.upload_data(str(source), key_prefix=f"{NAME}/source")
    command = {"source_dir": uri, "entry_script": None, "command": "python train.py --epochs 7"}
    assert train(session, "s3", source, source_code=command)["result-0.json"]["epochs"] == 7


def test_torchrun_on_two_instances(session: Any, source: Path) -> None:
    left = train(session, "torchrun", source, 2, distributed=Torchrun(process_count_per_node=1))
    assert {each["rank"]: each["sum"] for each in left.values()} == {"0": 2.0, "1": 2.0}


class OwnDriver(DistributedConfig):  # type: ignore[misc]
    """A driver of the user's, in a folder of the user's."""

    folder: str

    @property
    def driver_dir(self) -> str:
        return self.folder

    @property
    def driver_script(self) -> str:
        return "own_driver.py"


@pytest.mark.slow
def test_a_driver_of_the_users(session: Any, source: Path, tmp_path: Path) -> None:
    (tmp_path / "drivers").mkdir()
    (tmp_path / "drivers" / "own_driver.py").write_text(
        "import os, runpy, sys\n"
        "sys.argv = ['train.py', '--epochs', '9']\n"
        "runpy.run_path(os.environ['SM_ENTRY_SCRIPT'])\n"
    )
    left = train(session, "own", source, distributed=OwnDriver(folder=str(tmp_path / "drivers")))
    assert left["result-0.json"]["epochs"] == 9


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mpirun") is not None, reason="this machine has mpirun")
def test_mpi_names_what_this_machine_lacks(session: Any, source: Path) -> None:
    with pytest.raises(FailedStatusError, match=r"this machine lacks mpirun.*, which the image has and MPI needs"):
        train(session, "mpi", source, distributed=MPI(process_count_per_node=2))
