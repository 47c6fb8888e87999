"""Clients of AWS's services, and sessions, that do not read botocore's models again: that takes a tenth of a second.

Each session reads them for itself, and while moto answers, it sets boto3's own aside: `boto3.client` then makes one for
every test. Nor do sessions look at botocore's 150 handlers again, which takes each of them a hundredth.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import lru_cache
from typing import Any

import boto3
import botocore.session
import moto.core.models  # noqa: F401 - moto answers only clients of sessions made after this
from botocore.config import Config
from botocore.loaders import Loader
from botocore.stub import Stubber


def aws_client(service: str, **more: Any) -> Any:
    """A new client, in us-east-1 and with dummy credentials unless `more` says otherwise."""
    return _session().client(service, **more)


def impatient_client(service: str, **more: Any) -> Any:
    """One that asks once, so that what a scripted or broken service says comes through as it is."""
    once: Any = {"mode": "standard", "total_max_attempts": 1}
    return aws_client(service, config=Config(retries=once), **more)


@contextmanager
def scripted(service: str, **more: Any) -> Iterator[Stubber]:
    """An impatient client's script, which checks questions and answers by the service's model."""
    with Stubber(impatient_client(service, **more)) as script:
        yield script


def aws_session(**more: Any) -> boto3.session.Session:
    """A new session, for tests that change one or give it other credentials."""
    core = botocore.session.Session(event_hooks=copy(_handlers()), include_builtin_handlers=False)
    core.register_component("data_loader", _loader())
    return boto3.session.Session(botocore_session=core, **more)


@lru_cache(maxsize=1)
def _handlers() -> Any:
    """Return an emitter of events with botocore's handlers, to be copied."""
    return botocore.session.Session().get_component("event_emitter")


@lru_cache(maxsize=1)
def _session() -> boto3.session.Session:
    return aws_session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")


@lru_cache(maxsize=1)
def _loader() -> Loader:
    """Return the loader, which keeps the models that it has read."""
    return Loader()
