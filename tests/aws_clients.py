"""Clients of AWS's services that share one session: each session reads botocore's models anew, for a tenth of a second.

While moto answers, it sets boto3's own session aside: `boto3.client` then makes one for every test.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import boto3
import moto.core.models  # noqa: F401 - moto answers only clients of sessions made after this


def aws_client(service: str, **more: Any) -> Any:
    """A new client, in us-east-1 and with dummy credentials unless `more` says otherwise."""
    return _session().client(service, **more)


@lru_cache(maxsize=1)
def _session() -> boto3.session.Session:
    return boto3.session.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
