"""Settings with which programs for the SageMaker SDKs work unchanged on the local stack."""

from __future__ import annotations

import getpass
import json
import re
from pathlib import Path

from botocore.credentials import Credentials

from trainmaster.local.stack import redirect
from trainmaster.local.stack.address import ACCOUNT, REGION
from trainmaster.local.stack.signed import client

DEFAULT_BUCKET = f"sagemaker-{REGION}-{ACCOUNT}"
"""The name that the SDK would choose."""
ROLE = "AmazonSageMaker-ExecutionRole-local"
"""Execution role of jobs, and the role of the shell, as in a SageMaker notebook: `get_execution_role()` returns it."""
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
_LIFETIME_SECONDS = 10 * 365 * 86400
_CONFIG = {
    "SchemaVersion": "1.0",
    "SageMaker": {
        "PythonSDK": {"Modules": {"TelemetryOptOut": True, "Session": {"DefaultS3Bucket": DEFAULT_BUCKET}}},
    },
}


def settings(folder: Path) -> dict[str, str]:
    """Return variables for the SDKs, and write the configuration file that they name.

    The default bucket is a local one, the SDK sends no telemetry, and does not compare roles with policies that the
    local IAM does not have. Clients whose address the SDK sets itself reach the stack as well.
    """
    config = folder / "sagemaker.yaml"
    config.write_text(json.dumps(_CONFIG))
    return {
        "SAGEMAKER_USER_CONFIG_OVERRIDE": str(config),
        "SAGEMAKER_ADMIN_CONFIG_OVERRIDE": str(config),
        "SAGEMAKER_VALIDATE_ROLE": "false",
        "BOTOCORE_EXPERIMENTAL__PLUGINS": f"trainmaster={redirect.__name__}",
    }


def role_credentials(aws_endpoint: str) -> dict[str, str]:
    """Create the execution role and the default bucket, and return credentials of a session of the role."""
    client("s3", aws_endpoint).create_bucket(Bucket=DEFAULT_BUCKET)
    session = re.sub(r"[^\w+=,.@-]", "-", f"local-{getpass.getuser()}", flags=re.ASCII)
    found = session_of_role(aws_endpoint, ROLE, session)
    return {
        "AWS_ACCESS_KEY_ID": found.access_key,
        "AWS_SECRET_ACCESS_KEY": found.secret_key,
        "AWS_SESSION_TOKEN": str(found.token),
    }


def session_of_role(aws_endpoint: str, role: str, session: str) -> Credentials:
    """Create a role, and return credentials of a session of it."""
    client("iam", aws_endpoint).create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(_TRUST))
    found = client("sts", aws_endpoint).assume_role(
        RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{role}", RoleSessionName=session, DurationSeconds=_LIFETIME_SECONDS
    )["Credentials"]
    return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])
