"""The SageMaker launcher over moto, which completes every job at creation.

It takes a name twice, stops and updates nothing, and knows no limits: those groups are the simulator's.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from launcher_contract import QUEUE, Creates
from moto import mock_aws

from aws_clients import aws_client
from builders import a_request
from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher


class MotoBench:
    def __init__(self):
        self.client = aws_client("sagemaker")
        self.launcher = SageMakerLauncher(self.client, QUEUE)

    def now(self):
        return datetime.now(UTC)

    def let(self, seconds):
        """Nothing is left to happen."""

    def create_elsewhere(self, request):
        self.client.create_training_job(**request)

    def described(self, name):
        return self.client.describe_training_job(TrainingJobName=name)

    def tags_of(self, name):
        arn = self.described(name)["TrainingJobArn"]
        return {tag["Key"]: tag["Value"] for tag in self.client.list_tags(ResourceArn=arn)["Tags"]}


@pytest.fixture
def bench():
    with mock_aws():
        yield MotoBench()


class TestMoto(Creates):
    """The SageMaker adapter over moto."""

    def test_an_ended_job_is_not_open_and_holds_nothing(self, bench):
        bench.create_elsewhere(a_request("ended"))
        assert bench.launcher.units_of("ended") == {}
        assert bench.launcher.describe("ended").terminal
        assert bench.launcher.list_open_jobs(datetime(2026, 1, 1, tzinfo=UTC)).names == ()
