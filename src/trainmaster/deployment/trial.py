"""The training job of `trainmaster doctor --try`: tiny, with a price that is known before it runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainmaster.client.api.errors import Refused

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.client.views.types import PoolView

MAX_SECONDS: Final = 900
"""SageMaker stops the job after this time; it bills from the download of the image on."""
IMAGE_REGISTRY: Final = "763104351884"
IMAGE_REGIONS: Final = frozenset(
    {
        *("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ca-central-1"),
        *("eu-central-1", "eu-north-1", "eu-west-1", "eu-west-2", "eu-west-3", "sa-east-1"),
        *("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
    }
)
"""Regions in which AWS's account 763104351884 has its deep learning containers (SageMaker SDK, `image_uris`)."""
_IMAGE: Final = "pytorch-training:2.3.0-cpu-py311"
_SCRIPT: Final = "echo trainmaster-doctor: the container runs"


@dataclass(frozen=True, slots=True)
class Trial:
    """The job to submit.

    Attributes:
        request: the CreateTrainingJob request.
        max_dollars: its price if it runs as long as it may; None if the price of the type is not known.
    """

    request: dict[str, Any]
    max_dollars: float | None

    @property
    def price_sentence(self) -> str:
        """The price as a sentence."""
        kind, minutes = self.request["ResourceConfig"]["InstanceType"], MAX_SECONDS // 60
        if self.max_dollars is None:
            return f"It uses one {kind} for {minutes} minutes at most; the queue does not know the price of this type."
        return f"It uses one {kind} for {minutes} minutes at most: ${self.max_dollars:.2f} at most."


def default_image(region: str) -> str:
    """Return the image of a Region. Raises Refused if AWS's registry there is not known."""
    if region not in IMAGE_REGIONS:
        raise Refused(f"No training image is known for {region}.", hint="Name one that the role can pull with --image.")
    return f"{IMAGE_REGISTRY}.dkr.ecr.{region}.amazonaws.com/{_IMAGE}"


def make_trial(  # noqa: PLR0913 - the members of a request
    pools: Iterable[PoolView], *, role: str, image: str, output: str, instance_type: str | None, now: datetime
) -> Trial:
    """Return the trial on the given type, by default on the cheapest one of the pools. Raises Refused."""
    usable = [pool for pool in pools if pool["cap"] and pool["state"] == "in use" and pool["kind"] == "on-demand"]
    named = [pool for pool in usable if instance_type in (None, pool["instanceType"])]
    if not named:
        what = f"of {instance_type}" if instance_type else "on demand"
        raise Refused(f"No pool {what} is in use.", hint="See `trainmaster pools`, or name a type: --instance-type.")
    pool = min(named, key=lambda each: (_price(each) or float("inf"), each["vcpus"], each["name"]))
    price = _price(pool)
    request = _request(pool["instanceType"], role=role, image=image, output=output)
    request["TrainingJobName"] = f"trainmaster-doctor-{now:%Y%m%d-%H%M%S}"
    return Trial(request, price * MAX_SECONDS / 3600 if price else None)


def _price(pool: PoolView) -> float:
    return pool["price"] or pool["onDemandPrice"]


def _request(instance_type: str, *, role: str, image: str, output: str) -> dict[str, Any]:
    return {
        "RoleArn": role,
        "AlgorithmSpecification": {
            "TrainingImage": image,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["/bin/sh", "-c"],
            "ContainerArguments": [_SCRIPT],
        },
        "OutputDataConfig": {"S3OutputPath": output},
        "ResourceConfig": {"InstanceType": instance_type, "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": MAX_SECONDS},
    }
