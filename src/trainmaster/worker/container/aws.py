"""Clients of AWS services in a training container, where boto3 does not know the Region by itself."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.config import Config

REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
_ARN = re.compile(rf"arn:[a-z-]+:sagemaker:({REGION.pattern}):")


def make_client(
    service: str,
    region: str | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    config: Config | None = None,
) -> Any:
    """Return a client with boto3's usual credentials and endpoints.

    Args:
        service: boto3's name of the service.
        region: AWS Region; None for boto3's, otherwise AWS_REGION, otherwise that of TRAINING_JOB_ARN, which SageMaker
            always sets and boto3 does not read.
        environ: variables; None for the process's.
        config: timeouts and tries; None for botocore's.
    """
    session: Any = boto3.session.Session()
    variables = os.environ if environ is None else environ
    region = region or session.region_name or variables.get("AWS_REGION") or _region_of_job(variables)
    return session.client(service, region_name=region, config=config)


def _region_of_job(environ: Mapping[str, str]) -> str | None:
    match = _ARN.match(environ.get("TRAINING_JOB_ARN", ""))
    return match and match[1]
