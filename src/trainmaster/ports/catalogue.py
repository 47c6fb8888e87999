"""AWS's descriptions, quotas and prices of instance types."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from trainmaster.domain.capacity.resources import InstanceType


class InstanceTypes(Protocol):
    """Instance types as EC2 describes them."""

    def describe(self, names: Collection[str]) -> Mapping[str, InstanceType]:
        """Return those of the named ML types that exist in this Region, by name; prices are 0, since EC2 gives none.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...


class Quotas(Protocol):
    """The account's Service Quotas for training jobs."""

    def quotas(self) -> Mapping[str, int]:
        """Return how many instances of each type training jobs may use at once.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...


class Prices(Protocol):
    """AWS's price list for training jobs."""

    def prices(self) -> Mapping[str, float]:
        """Return on-demand prices by instance type, in US dollars an hour, all above 0.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...
