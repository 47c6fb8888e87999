"""The trimmed SageMaker model: what botocore gives, small, and enough for the queue's clients."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import botocore
import botocore.session
import pytest
from botocore.model import ServiceModel
from botocore.stub import Stubber

from builders import NOW, a_request
from trainmaster.adapters.sagemaker.service_model import SERVICE_FILE, use_trimmed_model

ROOT = Path(__file__).parents[3]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("trim_service_model", ROOT / "scripts" / "trim_service_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


trim = script()
committed: dict[str, Any] = json.loads(SERVICE_FILE.read_bytes())

# Members that the queue reads or sends by name, by operation and side; a botocore without one of these would break it.
RELIED_ON = {
    ("CreateTrainingJob", "input"): {
        "TrainingJobName", "RoleArn", "Tags", "ResourceConfig", "StoppingCondition", "CheckpointConfig",
        "InputDataConfig", "EnableManagedSpotTraining", "ServerlessJobConfig", "AlgorithmSpecification",
    },
    ("CreateTrainingJob", "output"): {"TrainingJobArn"},
    ("DescribeTrainingJob", "input"): {"TrainingJobName"},
    ("DescribeTrainingJob", "output"): {
        "TrainingJobName", "TrainingJobArn", "TrainingJobStatus", "SecondaryStatus", "FailureReason", "ResourceConfig",
        "WarmPoolStatus", "CreationTime", "TrainingStartTime", "TrainingEndTime", "LastModifiedTime",
    },
    ("ListTrainingJobs", "input"): {
        "NextToken", "MaxResults", "StatusEquals", "WarmPoolStatusEquals", "CreationTimeAfter",
    },
    ("ListTrainingJobs", "output"): {"TrainingJobSummaries", "NextToken"},
    ("StopTrainingJob", "input"): {"TrainingJobName"},
    ("UpdateTrainingJob", "input"): {"TrainingJobName", "ResourceConfig"},
    ("AddTags", "input"): {"ResourceArn", "Tags"},
    ("ListTags", "input"): {"ResourceArn"},
    ("ListTags", "output"): {"Tags"},
}  # fmt: skip
RESOURCES = {
    "InstanceType", "InstanceCount", "InstanceGroups", "InstancePreferences", "InstancePlacementConfig",
    "KeepAlivePeriodInSeconds", "TrainingPlanArn", "SelectedInstanceType", "SelectedInstanceCount",
}  # fmt: skip


def test_it_is_what_this_botocore_gives_where_the_versions_agree() -> None:
    """With another botocore the next test alone speaks: newer ones may have more, but nothing that we use less."""
    rendered = trim.render(trim.trim(trim.installed_model(), trim.OPERATIONS, botocore.__version__))
    if botocore.__version__ == committed["trimmedFrom"]["version"]:
        assert SERVICE_FILE.read_text(encoding="utf-8") == rendered, "run: python scripts/trim_service_model.py"
    assert json.loads(rendered)["trimmedFrom"]["version"] == botocore.__version__


@pytest.mark.parametrize("source", ["committed", "installed"])
def test_required_operations_are_in_the_model(source: str) -> None:
    model = ServiceModel(committed if source == "committed" else trim.installed_model(), "sagemaker")
    for (operation, side), members in RELIED_ON.items():
        shape: Any = getattr(model.operation_model(operation), f"{side}_shape")
        missing = members - set(shape.members)
        assert not missing, f"{operation} {side} has lost {missing}"
    assert set(model.shape_for("ResourceConfig").members) >= RESOURCES  # type: ignore[attr-defined]
    assert {"ResourceInUse", "ResourceLimitExceeded", "ResourceNotFound"} <= set(model.shape_names)


def test_it_is_whole_small_and_without_words() -> None:
    model = ServiceModel(committed, "sagemaker")
    assert set(model.operation_names) == set(trim.OPERATIONS)
    for name in model.shape_names:
        shape: Any = model.shape_for(name)
        list(getattr(shape, "members", {}).values())
        assert not shape.documentation
    reached = set(trim._references(committed["operations"])) | set(trim._references(committed["shapes"]))
    assert reached == set(committed["shapes"])
    assert SERVICE_FILE.stat().st_size < 80_000


def test_a_member_named_documentation_stays() -> None:
    model = {
        "version": "2.0",
        "metadata": {},
        "operations": {"Do": {"name": "Do", "documentation": "words", "input": {"shape": "In"}}, "Other": {}},
        "shapes": {
            "In": {"type": "structure", "documentation": "words", "members": {"documentation": {"shape": "Text"}}},
            "Text": {"type": "string", "documentation": "words"},
            "Unused": {"type": "string"},
        },
    }
    trimmed = trim.trim(model, ["Do"], "1")
    assert trimmed["operations"] == {"Do": {"name": "Do", "input": {"shape": "In"}}}
    assert trimmed["shapes"] == {
        "In": {"type": "structure", "members": {"documentation": {"shape": "Text"}}},
        "Text": {"type": "string"},
    }


def test_the_check_of_the_script_finds_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    same = botocore.__version__ == committed["trimmedFrom"]["version"]
    assert trim.main(["--check"]) == (0 if same else 1)
    assert ("up to date" in capsys.readouterr().out) is same


class TestClients:
    def a_session(self, data_path: str | None = None) -> boto3.Session:
        session = botocore.session.Session()
        if data_path:
            session.set_config_variable("data_path", data_path)
        return boto3.Session(
            botocore_session=use_trimmed_model(session),
            region_name="us-east-1",
            aws_access_key_id="x",
            aws_secret_access_key="x",
        )

    def test_sagemaker_reads_the_trimmed_model_and_others_their_own(self) -> None:
        session = self.a_session()
        sagemaker = session.client("sagemaker")
        assert set(sagemaker.meta.service_model.operation_names) == set(trim.OPERATIONS)
        assert sagemaker.meta.endpoint_url == "https://api.sagemaker.us-east-1.amazonaws.com"
        assert "SendMessage" in session.client("sqs").meta.service_model.operation_names
        assert sagemaker.can_paginate("list_training_jobs")
        assert issubclass(sagemaker.exceptions.ResourceInUse, sagemaker.exceptions.ClientError)

    def test_a_request_of_today_goes_out_whole(self) -> None:
        sagemaker: Any = self.a_session().client("sagemaker")
        sent: list[dict[str, Any]] = []

        def keep(params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
            sent.append(json.loads(params["body"]))
            return type("Answer", (), {"status_code": 200})(), {"TrainingJobArn": "arn"}

        sagemaker.meta.events.register("before-call.sagemaker.CreateTrainingJob", keep)
        preferences = [{"InstanceType": "ml.g5.2xlarge", "InstanceCount": 1}]
        request = a_request(ResourceConfig={"InstancePreferences": preferences})
        sagemaker.create_training_job(**request)
        assert sent == [request]

    def test_an_answer_is_read_with_its_types(self) -> None:
        sagemaker: Any = self.a_session().client("sagemaker")
        with Stubber(sagemaker) as stub:
            stub.add_response(
                "list_training_jobs",
                {
                    "TrainingJobSummaries": [
                        {
                            "TrainingJobName": "job1",
                            "TrainingJobArn": "arn:aws:sagemaker:us-east-1:111122223333:training-job/job1",
                            "CreationTime": NOW,
                            "TrainingJobStatus": "InProgress",
                        }
                    ]
                },
            )
            assert sagemaker.list_training_jobs()["TrainingJobSummaries"][0]["CreationTime"] == NOW

    def test_the_users_own_data_path_stays(self, tmp_path: Path) -> None:
        own = tmp_path / "mine" / "2020-01-01"
        own.mkdir(parents=True)
        (own / "service-2.json").write_text(json.dumps({"metadata": {}, "operations": {}, "shapes": {}}))
        session = self.a_session(str(tmp_path))
        assert "mine" in session.get_available_services()
        assert len(session.client("sagemaker").meta.service_model.operation_names) == len(trim.OPERATIONS)
