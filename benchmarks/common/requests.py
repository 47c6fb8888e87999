"""CreateTrainingJob requests of a given size: as an SDK makes them, or with text that does not compress.

The same arguments make the same request.
"""

from __future__ import annotations

import base64
import json
import random
from typing import Any

from builders import IMAGE, P5, ROLE

SIZE = 4096
"""Bytes of JSON of the request in the goals."""
_MAX_VALUE_LENGTH = 2300
_PUNCTUATION = len(',"":""')
_SHORTEST_ENTRY = 100
"""Bytes that are enough for one more entry."""
_CODE = "s3://acme-ml-us-east-1/code/{name}/sourcedir.tar.gz"
_SETTINGS = ("lr", "warmup_steps", "weight_decay", "epochs", "batch_size", "grad_clip", "dropout", "seq_len", "seed")


def request(
    name: str, *, priority: int = 0, kind: str = P5, size: int = SIZE, dense: bool = False, **script: Any
) -> dict[str, Any]:
    """Return a request of exactly `size` bytes.

    Args:
        name: the training job's.
        priority: its tag.
        kind: instance type.
        size: bytes of its compact JSON.
        dense: fill it with text that does not compress, instead of settings and paths.
        **script: variables of the simulator, such as `training_seconds`.
    """
    made = _plain(name, priority, kind, script)
    rng = random.Random(name)
    room = size - len(json.dumps(made, separators=(",", ":")))
    for number in range(100):
        key = f"{rng.choice(_SETTINGS)}_{number}"
        most = room - len(key) - _PUNCTUATION
        length = min(most, _MAX_VALUE_LENGTH if dense else rng.randint(3, max(60, size // 40)))
        if most - length < _SHORTEST_ENTRY:
            length = most
        made["HyperParameters"][key] = _text(rng, length, dense=dense)
        room = most - length
        if not room:
            return made
    raise ValueError(f"{size} bytes are too few or too many")


def _text(rng: random.Random, length: int, *, dense: bool) -> str:
    if dense:
        return base64.b64encode(rng.randbytes(length))[:length].decode()
    parts = ["s3://acme-ml-us-east-1/", "datasets/", "imagenet-2012/", f"{rng.random():.6f}", "/true/", "adamw-"]
    return "".join(rng.choices(parts, k=length // 5 + 1))[:length]


def _plain(name: str, priority: int, kind: str, script: dict[str, Any]) -> dict[str, Any]:
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE,
        "AlgorithmSpecification": {
            "TrainingImage": IMAGE,
            "TrainingInputMode": "File",
            "EnableSageMakerMetricsTimeSeries": True,
            "MetricDefinitions": [
                {"Name": f"{part}:{metric}", "Regex": f"{part} {metric}=([0-9.]+)"}
                for part in ("train", "validation")
                for metric in ("loss", "accuracy", "throughput")
            ],
        },
        "InputDataConfig": [_channel(channel) for channel in ("train", "validation")],
        "OutputDataConfig": {"S3OutputPath": "s3://acme-ml-us-east-1/output"},
        "CheckpointConfig": {"S3Uri": f"s3://acme-ml-us-east-1/checkpoints/{name}"},
        "ResourceConfig": {"InstanceType": kind, "InstanceCount": 1, "VolumeSizeInGB": 200},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
        "Environment": {f"SIMULATOR_{key.upper()}": str(value) for key, value in script.items()},
        "HyperParameters": {
            "sagemaker_program": '"train.py"',
            "sagemaker_submit_directory": json.dumps(_CODE.format(name=name)),
            "sagemaker_container_log_level": "20",
            "sagemaker_region": '"us-east-1"',
        },
        "Tags": [{"Key": "priority", "Value": str(priority)}, {"Key": "project", "Value": "vision"}],
    }


def _channel(name: str) -> dict[str, Any]:
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": f"s3://acme-ml-us-east-1/datasets/imagenet-2012/{name}",
        "S3DataDistributionType": "FullyReplicated",
    }
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}}
