"""The caller's AWS account beside the queue's API, for the command line's tests: clients with scripted answers."""

from __future__ import annotations

from datetime import datetime
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

from fake_api import G5, P5

ACCOUNT = "123456789012"
REGION = "us-east-1"


class _Pages:
    """A client whose paginators return one page each."""

    def __init__(self, operation: str, page: dict[str, Any]) -> None:
        self._operation, self._page = operation, page

    def get_paginator(self, operation: str) -> Any:
        assert operation == self._operation
        return SimpleNamespace(paginate=lambda **_: [self._page])


class FakeAccount:
    """The caller's AWS account: a session whose clients answer what the test says."""

    def __init__(self, date: datetime) -> None:
        self.date = date
        self.quotas: dict[str, float] = {f"{kind} for training job usage": 64.0 for kind in (P5, G5)}
        self.alarms = [{"AlarmName": "trainmaster-a", "StateValue": "OK", "AlarmActions": ["arn:topic"]}]
        self.status = "CREATE_COMPLETE"
        self.without: set[str] = set()
        self.errors: dict[str, Exception] = {}
        self._session = SimpleNamespace(profile=None, get_scoped_config=dict)

    def regions(self, service: str, region: str) -> list[str]:
        assert region == REGION
        return [] if service in self.without else [REGION]

    def client(self, service: str, region_name: str | None = None) -> Any:
        assert region_name == REGION
        if error := self.errors.get(service):
            raise error
        identity = {
            "Account": ACCOUNT,
            "Arn": f"arn:aws:iam::{ACCOUNT}:user/ann",
            "ResponseMetadata": {"HTTPHeaders": {"date": format_datetime(self.date, usegmt=True)}},
        }
        quotas = [{"QuotaName": name, "Value": value} for name, value in self.quotas.items()]
        stacks = {"Stacks": [{"StackStatus": self.status}]}
        return {
            "sts": SimpleNamespace(get_caller_identity=lambda: identity),
            "service-quotas": _Pages("list_service_quotas", {"Quotas": quotas}),
            "cloudformation": SimpleNamespace(describe_stacks=lambda **_: stacks),
            "cloudwatch": _Pages("describe_alarms", {"MetricAlarms": self.alarms}),
        }[service]
