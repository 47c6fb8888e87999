"""The examples that the help of each command ends with."""

import json
import shlex
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from typer.main import get_command

from aws_clients import aws_session
from cli_terminal import Terminal
from fake_api import ROLE, a_request
from trainmaster.cli.examples import EXAMPLES
from trainmaster.cli.program import build
from trainmaster.client.api.client import ApiClient

WITHOUT = {"replay", "demo"}
"""Their help says how to call them."""
OF_THE_STACK = {"deploy", "upgrade", "uninstall"}
"""They call CloudFormation, not the API."""
SURVEYS = {"doctor"}
"""It reports a call that fails among its findings."""
LIVE = {"top"}
"""It needs a terminal."""
OF_THE_PACKAGE = {"exporter --board > grafana.json"}
"""They print a file of the package."""
LINES = [
    line
    for path, lines in EXAMPLES.items()
    for line in lines
    if path not in OF_THE_STACK | SURVEYS | LIVE and line not in OF_THE_PACKAGE
]
CONTAINER = {"name": "train", "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/train:1", "command": ["train"]}
MANIFEST = {
    "apiVersion": "sagemaker.amazonaws.com/v1",
    "kind": "HyperPodPyTorchJob",
    "metadata": {"name": "job2"},
    "spec": {
        "nprocPerNode": "1",
        "replicaSpecs": [{"name": "w", "replicas": 1, "template": {"spec": {"containers": [CONTAINER]}}}],
    },
}
DEFAULTS = {
    "RoleArn": ROLE,
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
}
RANGE = {"Name": "lr", "MinValue": "0.001", "MaxValue": "0.1"}
FILES = {
    "job.json": a_request("new"),
    "tuning-job.json": {
        "HyperParameterTuningJobName": "tuning",
        "HyperParameterTuningJobConfig": {
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 3, "MaxParallelTrainingJobs": 1},
            "ParameterRanges": {"ContinuousParameterRanges": [RANGE]},
        },
        "TrainingJobDefinition": a_request("unused"),
    },
    "job.yaml": MANIFEST,
    "defaults.json": DEFAULTS,
    "queue.json": {"trainmasterExport": 1, "settings": {}, "pools": [], "jobs": []},
    "settings.json": {"order": "fair"},
}


class Called(Exception):
    """The API was called."""


class Reached(httpx.BaseTransport):
    """A network that tells of the first call."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Tell of the call."""
        raise Called


def paths(group: Any, above: str = "") -> set[str]:
    found = {f"{above}{name}" for name in group.commands}
    below = [(name, each) for name, each in group.commands.items() if hasattr(each, "commands")]
    return found.union(*(paths(each, f"{name} ") for name, each in below))


def test_each_command_has_examples() -> None:
    assert paths(get_command(build())) - WITHOUT == set(EXAMPLES)
    assert [line for path, lines in EXAMPLES.items() for line in lines if not f"{line} ".startswith(f"{path} ")] == []


@pytest.mark.parametrize("path", EXAMPLES)
def test_the_help_ends_with_the_examples(path: str, run: Terminal) -> None:
    shown = run(*path.split(), "--help").stdout
    assert shown.endswith("\n  Examples:\n" + "".join(f"    trainmaster {line}\n" for line in EXAMPLES[path]))


@pytest.mark.parametrize("line", LINES)
def test_an_example_is_a_call_that_reaches_the_api(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, document in FILES.items():
        (tmp_path / name).write_text(yaml.safe_dump(document) if name.endswith("yaml") else json.dumps(document))
    monkeypatch.chdir(tmp_path)
    session = aws_session(aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="secret", region_name="us-east-1")
    api = ApiClient("https://api", session=session, transport=Reached(), environ={})
    with pytest.raises(Called):
        Terminal(api)(*shlex.split(line.partition(" > ")[0]))
