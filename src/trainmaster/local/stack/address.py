"""Where a running local stack is reached, and what a process must be told to reach it.

Values only: it starts nothing and calls nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ACCOUNT = "000000000000"
"""ministack takes a key id of twelve digits as the account."""
SECRET = "local"  # noqa: S105 - ministack takes any
REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class StackAddress:
    """A deployed local stack.

    Attributes:
        api_url: base address of the queue's API, for clients.
        aws_endpoint: every AWS service but SageMaker.
        sagemaker_endpoint: the SageMaker simulator.
        outputs: the CloudFormation stack's outputs.
    """

    api_url: str
    aws_endpoint: str
    sagemaker_endpoint: str
    outputs: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """What a client process needs in its environment, the queue's address included."""
        return {
            **aws_environment(self.aws_endpoint, self.sagemaker_endpoint),
            "TRAINMASTER_API_URL": self.api_url,
        }


def aws_environment(aws_endpoint: str, sagemaker_endpoint: str) -> dict[str, str]:
    """AWS settings that lead to the local stack and to nothing else: no profile, no metadata service."""
    return {
        "AWS_ACCESS_KEY_ID": ACCOUNT,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL": aws_endpoint,
        "AWS_ENDPOINT_URL_SAGEMAKER": sagemaker_endpoint,
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": sagemaker_endpoint,
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without AWS settings, proxies and Trainmaster's own.

    Lambda workers inherit ministack's environment, and the service refuses `TRAINMASTER_` settings that it does not
    know; a proxy would be asked for loopback addresses.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(("AWS_", "TRAINMASTER_", "POWERTOOLS_", "PYTHON"))
        and not name.lower().endswith("_proxy")
    }
