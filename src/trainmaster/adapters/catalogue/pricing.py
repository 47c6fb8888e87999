"""What an hour of each instance type costs in a training job on demand, from AWS's price list, as `ports.Prices`.

A product of the list is a JSON text: `terms.OnDemand.*.priceDimensions.*.pricePerUnit.USD` (page "Reading your service
price list file for an AWS service" of the Billing user guide). What SageMaker's products are like, programs tell that
read them (ec2instances.info, awslabs and aws-doctor on GitHub): all of the family `ML Instance` have a
`platoinstancetype`, of which `Training` is one and `SpotTraining` another, and a `usagetype` such as
`APN1-Train:ml.g6.xlarge`; `component` and `instanceName` are said of newer ones. It must not keep anything.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trainmaster.adapters.aws_errors import translated
from trainmaster.domain.errors import Unavailable

_TRAINING = re.compile(r"(?:\w+-)?Train:(?P<type>ml\.[\w.-]+)", re.ASCII)
_USE = "Training"
_HOURLY = frozenset({"hrs", "hour", "hours"})
_PAGE = 100
"""The most that GetProducts gives at once (API reference)."""
_NEAREST: Mapping[str, str] = {
    **dict.fromkeys(("ca", "mx", "sa", "us"), "us-east-1"),
    **dict.fromkeys(("af", "eu", "il", "me"), "eu-central-1"),
    "ap": "ap-south-1",
    "cn": "cn-northwest-1",
}
_PARTS = 3
"""Of a Region's name, such as `eu-west-1`, in the partitions of `_NEAREST`; GovCloud and others have four."""


class PriceList:
    """The Price List Query API's GetProducts (`pricing:GetProducts`).

    Args:
        new_client: makes a boto3 Pricing client, of the Region that `endpoint_region` tells; called when somebody
            first asks, since that is once a day.
        region: whose prices they are.
    """

    def __init__(self, new_client: Callable[[], Any], region: str) -> None:
        self._new_client = new_client
        self._region = region

    def prices(self) -> Mapping[str, float]:
        """The lowest price above 0 of each type in the Region; see `ports.Prices.prices`."""
        with translated():
            told = list(self._pages())
        found: dict[str, float] = {}
        for name, price in filter(None, map(training_price, told)):
            found[name] = min(price, found.get(name, price))
        if not found:
            raise Unavailable(f"AWS's price list has no price in dollars for training in {self._region}")
        return found

    def _pages(self) -> Iterator[str]:
        wanted = {"regionCode": self._region, "productFamily": "ML Instance", "platoinstancetype": _USE}
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
        asked = {"ServiceCode": "AmazonSageMaker", "FormatVersion": "aws_v1", "Filters": filters}
        pages = self._new_client().get_paginator("get_products")
        for page in pages.paginate(**asked, PaginationConfig={"PageSize": _PAGE}):
            yield from page["PriceList"]


def training_price(text: str) -> tuple[str, float] | None:
    """The type and its dollars an hour on demand, of one product; None where it is no such product.

    Instances of training plans and of spot jobs have other usage types; a product that cannot be read is passed over,
    so that one odd entry costs no other type its price.
    """
    try:
        told = json.loads(text)
        attributes = told["product"]["attributes"]
        usage = _TRAINING.fullmatch(attributes["usagetype"])
        amounts = [amount for amount in _dollars(told["terms"]["OnDemand"]) if math.isfinite(amount) and amount > 0]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    if usage is None or not amounts or attributes.get("platoinstancetype", _USE) != _USE:
        return None
    return usage["type"], min(amounts)


def endpoint_region(region: str) -> str:
    """Where prices of a Region are asked for: near it, in its partition.

    The API has endpoints in three Regions of AWS and in one of China (botocore's `endpoints.json`); a Region of a
    partition that we know nothing of is its own answer.
    """
    parts = region.split("-")
    return _NEAREST.get(parts[0], region) if len(parts) == _PARTS else region


def _dollars(terms: Mapping[str, Any]) -> Iterator[float]:
    for term in terms.values():
        for dimension in term["priceDimensions"].values():
            if str(dimension.get("unit")).lower() in _HOURLY and "USD" in dimension.get("pricePerUnit", {}):
                yield float(dimension["pricePerUnit"]["USD"])
