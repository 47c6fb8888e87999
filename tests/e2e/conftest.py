"""The deployed local stack, started once for all tests of the main environment.

Each test takes an instance type of its own, so that no test waits for another's jobs. Nothing here is read where the
SDK suites run: they bring their own stages.
"""

import json
import os
from pathlib import Path

import boto3
import pytest

from deployed_stack import Deployed, trainmaster
from trainmaster import ApiClient
from trainmaster.local.stack import Checkout, LocalStack
from trainmaster.local.stack.address import ACCOUNT, REGION, SECRET

__all__ = ["trainmaster"]

TYPES = [
    f"ml.{family}.{size}"
    for family in ("g4dn", "g5", "g6", "g6e")
    for size in ("xlarge", "2xlarge", "4xlarge", "8xlarge")
]
"""Instance types for tests to take; the cap of each is one, and the account's limit two."""
DOCUMENTED = "ml.p5.48xlarge"
"""Instance type of the examples in the docs, with the cap of `make stack`: two."""
SPEED = "40"
"""A job is at work a few seconds after it was started."""


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.stack)


@pytest.fixture(scope="session")
def deployed():
    caps = {"Pools": ",".join([*(f"{each}=1" for each in TYPES), f"{DOCUMENTED}=2"]), "Dashboard": "true"}
    limits = dict.fromkeys([*TYPES, DOCUMENTED], 2)
    label = f"e2e{os.environ.get('PYTEST_XDIST_WORKER', '')}"
    session = boto3.session.Session(aws_access_key_id=ACCOUNT, aws_secret_access_key=SECRET, region_name=REGION)
    with (
        LocalStack(label=label, limits=limits, parameters=caps, simulator=("--speed", SPEED)) as address,
        ApiClient(address.api_url, session=session) as api,
    ):
        yield Deployed(address, api)


@pytest.fixture(scope="session")
def _types():
    return iter(TYPES)


@pytest.fixture
def instance_type(_types):
    """An instance type that no other test uses, with a cap of one."""
    return next(_types)


@pytest.fixture(scope="session")
def checkout():
    return Checkout.here()


@pytest.fixture
def request_file(tmp_path):
    """Requests in files; what they say of instances is given."""

    def write(name, seconds=2, **instances):
        """A request; the job trains for so many seconds at the simulator's speed."""
        request = {
            "TrainingJobName": name,
            "RoleArn": "arn:aws:iam::000000000000:role/trainer",
            "AlgorithmSpecification": {
                "TrainingImage": "000000000000.dkr.ecr.us-east-1.amazonaws.com/x:1",
                "TrainingInputMode": "File",
            },
            "Environment": {"SIMULATOR_TRAINING_SECONDS": str(seconds * int(SPEED))},
            "OutputDataConfig": {"S3OutputPath": "s3://training/output"},
            "ResourceConfig": {**instances, "VolumeSizeInGB": 30},
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
            "CheckpointConfig": {"S3Uri": f"s3://training/checkpoints/{name}"},
        }
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(request))
        return path

    return write
