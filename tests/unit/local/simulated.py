"""A simulated account for tests: a simulator whose answers are checked, its client, and the events that it sent."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from builders import G5, P5, a_request
from trainmaster.local.simulator import Profile, SageMakerSimulator, VirtualClock

CPU = "ml.m5.large"
QUICK = Profile(
    requesting_seconds=1,
    starting_seconds=9,
    warm_starting_seconds=2,
    downloading_seconds=10,
    training_seconds=100,
    uploading_seconds=10,
    stopping_seconds=5,
    interrupted_seconds=30,
    pending_seconds=600,
)
"""Round figures: instances at 1 s, Downloading at 10, Training at 20, Uploading at 120, Completed at 130."""
TRAINING_FROM, ENDED_AT = 20, 130


class Account:
    """A simulator under a virtual clock with two P5 instances as the account's limit, and what came out of it."""

    def __init__(self, **settings: Any) -> None:
        self.events: list[dict[str, Any]] = []
        settings = {
            "limits": {P5: 2, G5: 8},
            "profile": QUICK,
            "rates": {"ListTrainingJobs": None},
            "sink": self.events.append,
            "check_responses": True,
            **settings,
        }
        self.simulator = SageMakerSimulator(VirtualClock(), **settings)
        self.client: Any = self.simulator.client()
        self.start = self.simulator.now()

    def unvalidated(self) -> Account:
        """The same, with a client that sends what botocore itself would refuse."""
        self.client = self.simulator.client(Config(parameter_validation=False))
        return self

    def create(self, name: str = "job1", **members: Any) -> None:
        self.client.create_training_job(**a_request(name, **members))

    def spot(self, name: str = "job1", *, runtime: int = 3600, wait: int = 7200, **members: Any) -> None:
        stopping = {"MaxRuntimeInSeconds": runtime, "MaxWaitTimeInSeconds": wait}
        self.create(name, EnableManagedSpotTraining=True, StoppingCondition=stopping, **members)

    def warm(self, name: str = "job1", seconds: int = 600, count: int = 1, **members: Any) -> None:
        config = resources(count=count, KeepAlivePeriodInSeconds=seconds)
        self.create(name, ResourceConfig=config, **members)

    def describe(self, name: str = "job1") -> dict[str, Any]:
        return self.client.describe_training_job(TrainingJobName=name)

    def stop(self, name: str = "job1") -> None:
        self.client.stop_training_job(TrainingJobName=name)

    def keep_alive(self, name: str, seconds: int) -> None:
        self.client.update_training_job(TrainingJobName=name, ResourceConfig={"KeepAlivePeriodInSeconds": seconds})

    def status(self, name: str = "job1") -> tuple[str, str]:
        seen = self.describe(name)
        return seen["TrainingJobStatus"], seen["SecondaryStatus"]

    def warm_status(self, name: str = "job1") -> dict[str, Any] | None:
        return self.describe(name).get("WarmPoolStatus")

    def passed(self, name: str = "job1") -> list[str]:
        return [each["Status"] for each in self.describe(name)["SecondaryStatusTransitions"]]

    def told(self, name: str = "job1") -> list[tuple[str, str]]:
        details = [event["detail"] for event in self.events]
        return [
            (detail["TrainingJobStatus"], detail["SecondaryStatus"])
            for detail in details
            if detail["TrainingJobName"] == name
        ]

    def advance(self, seconds: float) -> None:
        self.simulator.advance(seconds)

    def seconds(self, time: datetime) -> float:
        return (time - self.start).total_seconds()


def resources(instance_type: str = P5, *, count: int = 1, **members: Any) -> dict[str, Any]:
    return {"InstanceType": instance_type, "InstanceCount": count, "VolumeSizeInGB": 30, **members}


def refusal(call: Any, *args: Any, **kwargs: Any) -> tuple[str, str]:
    """The code and the text of the error that a call is answered with."""
    with pytest.raises(ClientError) as caught:
        call(*args, **kwargs)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]
