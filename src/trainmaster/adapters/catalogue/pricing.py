"""On-demand prices of training instances from AWS's price list, as `ports.Prices`, in dollars an hour.

A product of the list is a JSON text: `terms.OnDemand.*.priceDimensions.*.pricePerUnit.USD` (page "Reading your service
price list file for an AWS service" of the Billing user guide). AWS does not document SageMaker's attributes; this
follows programs that read them (ec2instances.info, awslabs and aws-doctor on GitHub). Products of the family
`ML Instance` have a `platoinstancetype` (`Training`, `SpotTraining` and others) and a `usagetype` such as
`APN1-Train:ml.g6.xlarge`; only newer ones have `component` and `instanceName`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.domain.errors import Unavailable

_TRAINING = re.compile(r"(?:\w+-)?Train:(?P<type>ml\.[\w.-]+)", re.ASCII)
_USE = "Training"
_HOURLY = frozenset({"hrs", "hour", "hours"})
_PAGE = 100
"""Products in one answer, at most (GetProducts, `MaxResults`)."""
_NEAREST: Mapping[str, str] = {
    **dict.fromkeys(("ca", "mx", "sa", "us"), "us-east-1"),
    **dict.fromkeys(("af", "eu", "il", "me"), "eu-central-1"),
    "ap": "ap-south-1",
    "cn": "cn-northwest-1",
}
_PARTS = 3
"""Parts of a Region's name, such as `eu-west-1`, in the partitions of `_NEAREST`; GovCloud and others have four."""


class PriceList:
    """The Price List Query API's GetProducts (`pricing:GetProducts`).

    Args:
        new_client: makes a boto3 Pricing client for `endpoint_region`; called at each use, which is once a day.
        region: the Region of the prices.
    """

    def __init__(self, new_client: Callable[[], Any], region: str) -> None:
        self._new_client = new_client
        self._region = region

    def prices(self) -> Mapping[str, float]:
        """Return the lowest price above 0 of each type in the Region; see `ports.Prices.prices`."""
        with translate_errors():
            products = list(self._pages())
        lowest: dict[str, float] = {}
        for name, price in filter(None, map(training_price, products)):
            lowest[name] = min(price, lowest.get(name, price))
        if not lowest:
            raise Unavailable(f"AWS's price list has no price in dollars for training in {self._region}")
        return lowest

    def _pages(self) -> Iterator[str]:
        criteria = {"regionCode": self._region, "productFamily": "ML Instance", "platoinstancetype": _USE}
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in criteria.items()]
        arguments = {"ServiceCode": "AmazonSageMaker", "FormatVersion": "aws_v1", "Filters": filters}
        pages = self._new_client().get_paginator("get_products")
        for page in pages.paginate(**arguments, PaginationConfig={"PageSize": _PAGE}):
            yield from page["PriceList"]


def training_price(text: str) -> tuple[str, float] | None:
    """Return the type and the on-demand dollars an hour of a training product, None for any other product.

    Instances of training plans and of spot jobs have other usage types. An unreadable product counts as another
    product, so that one odd entry does not cost other types their price.
    """
    try:
        product = json.loads(text)
        attributes = product["product"]["attributes"]
        usage = _TRAINING.fullmatch(attributes["usagetype"])
        amounts = [amount for amount in _dollars(product["terms"]["OnDemand"]) if math.isfinite(amount) and amount > 0]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    if usage is None or not amounts or attributes.get("platoinstancetype", _USE) != _USE:
        return None
    return usage["type"], min(amounts)


def endpoint_region(region: str) -> str:
    """Return the Region of the pricing endpoint for a Region: near it, in its partition.

    The API has endpoints in three Regions of AWS and in one of China (botocore's `endpoints.json`). A Region of an
    unknown partition maps to itself.
    """
    parts = region.split("-")
    return _NEAREST.get(parts[0], region) if len(parts) == _PARTS else region


def _dollars(terms: Mapping[str, Any]) -> Iterator[float]:
    for term in terms.values():
        for dimension in term["priceDimensions"].values():
            if str(dimension.get("unit")).lower() in _HOURLY and "USD" in dimension.get("pricePerUnit", {}):
                yield float(dimension["pricePerUnit"]["USD"])
