"""Sends messages about the progress of image jobs' runs to their progress queue; the manager reads the progress."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.adapters.sqs import GROUP
from trainmaster.images.domain.work import BEGUN, MERGE
from trainmaster.ports.runtime import Clock

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

EVERY = 3
"""Seconds in which a run is reported once, regardless of its ended regions; SQS drops the duplicates."""


class SqsProgress:
    """Sends to a FIFO queue that the manager consumes.

    Args:
        client: a boto3 SQS client.
        wake_queue_url: the queue to which the image functions report.
        clock: decides when a run is reported again.
    """

    def __init__(self, client: SQSClient, wake_queue_url: str, clock: Clock) -> None:
        self._client = client
        self._wake_queue_url = wake_queue_url
        self._clock = clock

    def tell(self, run: str, number: int) -> None:
        """Report that a run has begun, that a region has ended, or that the merging has; the last is never dropped.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        now = int(self._clock.now().timestamp())
        # A report that the run has begun must not make SQS drop the report of an end.
        kind = {MERGE: f"merged-{now}", BEGUN: f"begun-{now // EVERY}"}
        when = kind.get(number, str(now // EVERY))
        # Names of runs may be longer than these identifiers, and have other characters.
        run_id = hashlib.sha256(run.encode()).hexdigest()
        with translate_errors():
            self._client.send_message(
                QueueUrl=self._wake_queue_url,
                MessageBody=json.dumps({"kind": "image", "run": run}, separators=(",", ":")),
                MessageGroupId=GROUP,
                MessageDeduplicationId=f"image-{run_id}-{when}",
            )
