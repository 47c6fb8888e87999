"""IAM's answers about principals: the actions that they may take in AWS without the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

Context = Mapping[str, Sequence[str]]
"""Condition keys of a request with their values, all as text: `{"sagemaker:InstanceTypes": ["ml.p5.48xlarge"]}`."""


class Permissions(Protocol):
    """IAM's answers about principals of the deployment's account."""

    def allows(self, caller_arn: str, action: str, resource: str, context: Context) -> bool | None:
        """Return True if IAM allows the principal the action, False if not, None if IAM cannot answer.

        Raises nothing. IAM cannot answer for the root user, for federated users and for callers of another account,
        nor while it refuses, throttles or fails. False if the resource is in another account than the caller: none of
        the actions that the queue asks about can be allowed across accounts.

        Args:
            caller_arn: the ARN of a user, of a role's session, or of a role as sessions name it
                (`arn:aws:sts::111122223333:assumed-role/NAME`). Sessions of a role share its answer.
            action: as IAM names it, such as `iam:PassRole`.
            resource: one resource's ARN, without wildcards.
            context: the condition keys that the request would have; absent keys have no value.
        """
        ...
