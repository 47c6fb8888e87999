"""The account's quotas for training instances from Service Quotas, as `ports.Quotas`.

Each type has a quota for training jobs, named "<type> for training job usage"; spot jobs and warm pools have others
(SageMaker's console, "Service quotas").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from trainmaster.adapters.aws_errors import translate_errors

_NAME = re.compile(r"(?P<type>ml\.\S+) for training job usage", re.ASCII)
_PAGE = 100


class ServiceQuotas:
    """Service Quotas' ListServiceQuotas (`servicequotas:ListServiceQuotas`).

    Args:
        new_client: makes a boto3 Service Quotas client; called at each use, which is once a day.
    """

    def __init__(self, new_client: Callable[[], Any]) -> None:
        self._new_client = new_client

    def quotas(self) -> Mapping[str, int]:
        """Return the applied quotas, AWS's defaults or raised for the account; see `ports.Quotas.quotas`."""
        with translate_errors():
            client = self._new_client()
            arguments = {"ServiceCode": "sagemaker", "PaginationConfig": {"PageSize": _PAGE}}
            pages = client.get_paginator("list_service_quotas").paginate(**arguments)
            listed = [quota for page in pages for quota in page["Quotas"]]
        named = ((_NAME.fullmatch(quota.get("QuotaName", "")), quota.get("Value")) for quota in listed)
        return {name["type"]: int(value) for name, value in named if name is not None and value is not None}
