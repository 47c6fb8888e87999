"""The loop over a batch of SQS messages that the Lambdas of image jobs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord


def settle_messages(event: dict[str, Any], settle: Callable[[SQSRecord], bool]) -> dict[str, Any]:
    """Settle the messages of an SQS event one after the other, and return the partial batch response.

    SQS delivers again the messages for which `settle` returns False.
    """
    records = map(SQSRecord, event.get("Records", []))
    failed = [record.message_id for record in records if not settle(record)]
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in failed]}
