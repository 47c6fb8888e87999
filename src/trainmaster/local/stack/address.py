"""Addresses of a running local stack, and the environment of its clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ACCOUNT = "000000000000"
"""ministack takes an access key ID of twelve digits as the account."""
SECRET = "local"  # noqa: S105 - ministack accepts any
REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class StackAddress:
    """Addresses of a deployed local stack.

    Attributes:
        api_url: base URL of the queue's API.
        aws_endpoint: endpoint of all AWS services but SageMaker.
        sagemaker_endpoint: endpoint of the SageMaker simulator.
        outputs: outputs of the CloudFormation stack.
        sdk: settings of the SageMaker SDKs, and credentials of a role that training jobs may have.
    """

    api_url: str
    aws_endpoint: str
    sagemaker_endpoint: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    sdk: Mapping[str, str] = field(default_factory=dict)

    def endpoint_of(self, service: str) -> str:
        """Return the endpoint of an AWS service."""
        return self.sagemaker_endpoint if service.startswith("sagemaker") else self.aws_endpoint

    def environment(self) -> dict[str, str]:
        """Return the environment of a client process, with the queue's URL."""
        return {
            **aws_environment(self.aws_endpoint, self.sagemaker_endpoint),
            **self.sdk,
            "TRAINMASTER_API_URL": self.api_url,
        }


def aws_environment(aws_endpoint: str, sagemaker_endpoint: str) -> dict[str, str]:
    """Return AWS settings for the local stack only: no profile, no instance metadata."""
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
    """Return the environment without settings of AWS, its SDKs and Trainmaster, and without proxies.

    Lambda workers inherit ministack's environment, and the service rejects unknown `TRAINMASTER_` settings. A proxy
    would receive requests to loopback addresses.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(("AWS_", "BOTOCORE_", "SAGEMAKER_", "TRAINMASTER_", "POWERTOOLS_", "PYTHON"))
        and not name.lower().endswith("_proxy")
    }
