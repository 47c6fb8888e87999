"""Clients of AWS's services, and sessions, that do not read botocore's models anew: that takes a tenth of a second.

Each session reads them for itself, and while moto answers, it sets boto3's own aside: `boto3.client` then makes one for
every test.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import boto3
import botocore.session
import moto.core.models  # noqa: F401 - moto answers only clients of sessions made after this
from botocore.loaders import Loader


def aws_client(service: str, **more: Any) -> Any:
    """A new client, in us-east-1 and with dummy credentials unless `more` says otherwise."""
    return _session().client(service, **more)


def aws_session(**more: Any) -> boto3.session.Session:
    """A new session, for tests that change one or give it other credentials."""
    core = botocore.session.Session()
    core.register_component("data_loader", _loader())
    return boto3.session.Session(botocore_session=core, **more)


@lru_cache(maxsize=1)
def _session() -> boto3.session.Session:
    return aws_session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")


@lru_cache(maxsize=1)
def _loader() -> Loader:
    """What has been read."""
    return Loader()
