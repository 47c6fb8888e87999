"""The jobs of the example queue as data: three teams share three pools, and each example shows something else."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from trainmaster.local.stack.address import ACCOUNT, REGION

P5, G5, G6 = "ml.p5.48xlarge", "ml.g5.12xlarge", "ml.g6.12xlarge"
POOLS: Final = {P5: 8, G5: 12, G6: 4}
"""No share has a quota of the last one: jobs that ask for resources borrow it, and it can be removed."""
SETTINGS: Final[Mapping[str, Any]] = {
    "preemption": {"cooldownSeconds": 20},
    "resizes": {"payback": 0},
    "shares": {
        "language": {"nominal": {P5: 4, G5: 4}, "budget": {"gpuHours": 200, "periodSeconds": 86_400}},
        "speech": {"nominal": {P5: 2, G5: 2}},
        "vision": {"nominal": {P5: 2, G5: 6}, "weight": 2},
    },
}
"""Jobs of minutes: resumed jobs are protected for seconds, and each resize pays."""
PROFILE: Final = {"requesting_seconds": 0.5, "starting_seconds": 4, "downloading_seconds": 1, "uploading_seconds": 1,
                  "stopping_seconds": 2}  # fmt: skip
"""The steps of SageMaker that take minutes there, in seconds."""
_LIMIT_SECONDS: Final = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Training jobs of one sort. The queue always has some of them.

    Attributes:
        stem: beginning of their names, which end in a number.
        team: their share.
        on: instance type; None if the options ask for resources.
        count: instances of each.
        seconds: least and most work.
        alive: jobs that have not ended, at most.
        pause: seconds between two submissions, at least.
        priority: that of each job.
        options: further tags, without `trainmaster:`.
        profile: variables of the simulator, without their prefix.
        due_in: time until a job is considered at all; None for at once.
        hold: whether its team holds it.
        path: route of the API.
    """

    stem: str
    team: str
    on: str | None = P5
    count: int = 1
    seconds: tuple[int, int] = (40, 90)
    alive: int = 1
    pause: float = 15.0
    priority: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    profile: Mapping[str, str] = field(default_factory=dict)
    due_in: timedelta | None = None
    hold: bool = False
    path: str = "/add-job"

    def body(self, number: int, rng: random.Random, now: datetime) -> Mapping[str, Any]:
        """Return the request of a job of this sort."""
        name = f"{self.stem}-{number}"
        profile = {"training_seconds": str(rng.randint(*self.seconds)), **self.profile}
        return {
            "TrainingJobName": name,
            "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/{self.team}-training",
            "AlgorithmSpecification": {
                "TrainingImage": f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/{self.team}:1",
                "TrainingInputMode": "File",
            },
            "Environment": {f"SIMULATOR_{key.upper()}": value for key, value in profile.items()},
            "CheckpointConfig": {"S3Uri": f"s3://{self.team}/checkpoints/{name}"},
            "OutputDataConfig": {"S3OutputPath": f"s3://{self.team}/output"},
            "ResourceConfig": self._resources(),
            "StoppingCondition": {"MaxRuntimeInSeconds": _LIMIT_SECONDS},
            "Tags": self._tags(now),
        }

    def _resources(self) -> dict[str, Any]:
        typed = {"InstanceType": self.on, "InstanceCount": self.count} if self.on else {}
        return {**typed, "VolumeSizeInGB": 100}

    def _tags(self, now: datetime) -> list[dict[str, str]]:
        due = {} if self.due_in is None else {"not-before": (now + self.due_in).strftime("%Y-%m-%dT%H:%M:%SZ")}
        options = {"share": self.team, **self.options, **due}
        named = {"priority": str(self.priority), **{f"trainmaster:{key}": value for key, value in options.items()}}
        return [{"Key": key, "Value": value} for key, value in named.items()]


_ELASTIC: Final = {"min-instances": "1", "max-instances": "6", "scaling-timeout": "20"}
_FOUR_GPUS: Final = {"resources": "accelerators=4+accelerator=nvidia", "instances": "1"}
_FAILED: Final = {"outcome": "failed", "failure_reason": "AlgorithmError: CUDA out of memory, exit code: 1"}
TRAINING: Final = (
    Example(stem="llm-pretrain", team="language", count=4, seconds=(240, 360), priority=20, pause=60),
    Example(stem="vit-sweep", team="vision", count=3, seconds=(120, 200), alive=2, pause=30),
    Example(stem="whisper", team="speech", count=2, seconds=(90, 150), priority=10, alive=2, pause=40),
    Example(stem="llm-sft", team="language", count=2, seconds=(60, 120), priority=10, alive=3),
    Example(stem="reward-model", team="language", seconds=(40, 90), priority=5, alive=2),
    Example(stem="eval-elastic", team="vision", on=G5, seconds=(400, 600), options=_ELASTIC, pause=60),
    Example(stem="segment", team="vision", on=G5, count=5, seconds=(60, 120), alive=2, pause=30),
    Example(stem="asr-eval", team="speech", on=G5, count=3, seconds=(30, 60), alive=3),
    Example(stem="tokenizer", team="language", on=G5, count=2, seconds=(20, 50), alive=2, pause=20),
    Example(stem="urgent-fix", team="language", count=4, seconds=(30, 45), priority=50, pause=150),
    Example(stem="depth", team="vision", on=G5, seconds=(10, 20), pause=100, profile=_FAILED),
    Example(stem="any-gpu", team="speech", on=None, seconds=(30, 60), pause=20, alive=2, options=_FOUR_GPUS),
    Example(stem="embed", team="vision", on=None, seconds=(60, 120), pause=30,
            options={**_FOUR_GPUS, "instances": "2"}),
    Example(stem="too-large", team="vision", on=None,
            options={"resources": "accelerators=16", "instances": "1"}),
    Example(stem="nightly", team="speech", on=G5, due_in=timedelta(hours=9)),
    Example(stem="paused-by-hand", team="vision", on=G5, count=2, hold=True),
)  # fmt: skip
"""Long and short, elastic, preempting, failing, asking for resources that no pool has, due later, and held."""
