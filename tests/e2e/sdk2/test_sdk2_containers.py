"""Entry points of SDK 2 programs, run by the deployed local stack: what the SDK uploads is found and executed."""

import re
from pathlib import Path

import boto3
import pytest
from client_docs import blocks, run_as_program
from sagemaker import get_execution_role
from sagemaker.pytorch import PyTorch
from sagemaker.remote_function import RemoteExecutor

from trainmaster import QueueSession

pytestmark = pytest.mark.usefixtures("deployed")
DOCUMENTED = "ml.p5.48xlarge"
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/mine:1"


def test_the_estimator_of_the_quickstart_runs_as_it_stands(tmp_path: Path) -> None:
    (example,) = [block for block in blocks("docs/quickstart.md") if "sagemaker.estimator" in block]
    shown = run_as_program(example, tmp_path)
    assert "step 20 of 20" in shown
    (model,) = re.findall(r"^s3://(\S+)$", shown, re.MULTILINE)
    bucket, _, key = model.partition("/")
    assert boto3.client("s3").head_object(Bucket=bucket, Key=key)["ContentLength"] > 0


@pytest.mark.slow
def test_an_executor_returns_results_and_raises_what_a_function_raises() -> None:
    def divide(a: int, b: int) -> float:
        return a / b

    session = QueueSession()
    options = {"role": get_execution_role(), "instance_type": DOCUMENTED, "image_uri": IMAGE}
    with RemoteExecutor(max_parallel_jobs=2, sagemaker_session=session, **options) as executor:
        results = [executor.submit(divide, 6, each) for each in (2, 0)]
        assert results[0].result() == 3
        with pytest.raises(ZeroDivisionError):
            results[1].result()


def test_a_framework_estimator_runs_its_script_with_torchrun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(
        "import sys, torch, torch.distributed as group\n"
        "group.init_process_group('gloo')\n"
        "total = torch.ones(1)\n"
        "group.all_reduce(total)\n"
        "group.destroy_process_group()\n"
        "print('sum', total.item(), sys.argv[1:])\n"
    )
    estimator = PyTorch(
        entry_point="train.py",
        source_dir=str(tmp_path),
        role=get_execution_role(),
        framework_version="2.0.1",
        py_version="py310",
        instance_type=DOCUMENTED,
        instance_count=2,
        distribution={"torch_distributed": {"enabled": True}},
        hyperparameters={"lr": 0.1},
        sagemaker_session=QueueSession(),
    )
    estimator.fit()
    assert "sum 2.0 ['--lr', '0.1']" in capsys.readouterr().out
