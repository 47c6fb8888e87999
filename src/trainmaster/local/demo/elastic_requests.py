"""Requests of the elastic scenario: an elastic job of torch processes, two small jobs, and an urgent one.

The small jobs wait for a file to end, so the scenario does not depend on the speed of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.local.stack import Checkout

Request = dict[str, Any]
INSTANCES = {"ml.g5.12xlarge": 3}
ELASTIC = "elastic-ddp"
OTHERS = ("eval-1", "eval-2")
URGENT = "urgent-eval"
SIZES = (1, 3)
STEPS = 400
SECONDS_PER_STEP = 0.3
"""Pause of a step of one process; the processes of a world share it."""
IMMEDIATE_GROWTH = {"resizes": {"payback": 0}}
"""Settings: scale up as soon as there is room. The queue would learn from such short jobs that no resize pays."""
_WAITS = 'while [ ! -e "$0" ]; do sleep 0.2; done'
_RENDEZVOUS = "keep_alive_interval=3,keep_alive_max_attempt=10"
"""Long timeouts: on a busy machine, importing torch in three containers stops everything else for seconds."""


@dataclass(frozen=True, slots=True)
class Requests:
    """Builds the requests of the scenario.

    Attributes:
        checkout: has the training scripts.
        directory: folder of the checkpoints, and of the files that end the other jobs.
        instance_type: of all jobs; the scenario needs three instances.
    """

    checkout: Checkout
    directory: Path
    instance_type: str

    def elastic(self) -> Request:
        """Return the request of the elastic job: one or three instances, resized by members."""
        script = str(self.checkout.examples / "elastic_ddp.py")
        tags = {
            "trainmaster:instance-values": "+".join(map(str, SIZES)),
            "trainmaster:resize-by": "members",
            "trainmaster:scaling-timeout": "1",
            "trainmaster:graceful-shutdown-timeout": "60",
        }
        return {
            **self._request(ELASTIC, 1, tags),
            "AlgorithmSpecification": self._algorithm(
                str(self.checkout.torch_run), "--nproc-per-node", "1", "--rdzv-conf", _RENDEZVOUS, script
            ),
            "HyperParameters": {
                "steps": str(STEPS),
                "seconds": str(SECONDS_PER_STEP),
                # Save only at resizes and at the end, so that a step lost by a resize would show.
                "save_every": str(10 * STEPS),
                "checkpoints": str(self.directory / "checkpoints"),
            },
            "Environment": {"OMP_NUM_THREADS": "1"},
            "VpcConfig": {"Subnets": ["subnet-0123456789abcdef0"], "SecurityGroupIds": ["sg-0123456789abcdef0"]},
        }

    def other(self, name: str) -> Request:
        """Return the request of a job of one instance that ends after `release`."""
        return self._waiting(name, 1, {})

    def urgent(self) -> Request:
        """Return the request of a job of two instances with the highest priority."""
        return self._waiting(URGENT, 2, {"priority": "10"})

    def release(self, name: str) -> None:
        """Let one of the other jobs end."""
        self._end_of(name).touch()

    def _end_of(self, name: str) -> Path:
        return self.directory / f"{name}-may-end"

    def _waiting(self, name: str, instances: int, tags: Mapping[str, str]) -> Request:
        algorithm = self._algorithm("sh", "-c", _WAITS, str(self._end_of(name)))
        return {**self._request(name, instances, tags), "AlgorithmSpecification": algorithm}

    def _request(self, name: str, instances: int, tags: Mapping[str, str]) -> Request:
        return {
            "TrainingJobName": name,
            "RoleArn": "arn:aws:iam::000000000000:role/trainer",
            "OutputDataConfig": {"S3OutputPath": "s3://training/output"},
            "ResourceConfig": {
                "InstanceType": self.instance_type,
                "InstanceCount": instances,
                "VolumeSizeInGB": 30,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }

    def _algorithm(self, program: str, *arguments: str) -> Request:
        return {
            "TrainingImage": "000000000000.dkr.ecr.us-east-1.amazonaws.com/train:1",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": [program],
            "ContainerArguments": list(arguments),
        }
