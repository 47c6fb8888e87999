"""Tells the manager, by its wake queue, that a run of an image job has come further.

It must not say how far: the manager looks.
"""

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
"""Seconds in which a run is told of once, however many of its regions end; SQS swallows the others."""


class SqsProgress:
    """Sends to the manager's FIFO queue.

    Args:
        client: a boto3 SQS client.
        wake_queue_url: the manager's queue.
        clock: tells when a run is told of again.
    """

    def __init__(self, client: SQSClient, wake_queue_url: str, clock: Clock) -> None:
        self._client = client
        self._wake_queue_url = wake_queue_url
        self._clock = clock

    def tell(self, run: str, number: int) -> None:
        """Say that a region of a run has ended, or that it is at work, or the merging, which is told of in any case.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        now = int(self._clock.now().timestamp())
        # That it is at work must not swallow that a region has ended.
        kind = {MERGE: f"merged-{now}", BEGUN: f"begun-{now // EVERY}"}
        when = kind.get(number, str(now // EVERY))
        # Names of runs may be longer, and have characters that these identifiers cannot.
        run_id = hashlib.sha256(run.encode()).hexdigest()
        with translate_errors():
            self._client.send_message(
                QueueUrl=self._wake_queue_url,
                MessageBody=json.dumps({"kind": "image", "run": run}, separators=(",", ":")),
                MessageGroupId=GROUP,
                MessageDeduplicationId=f"image-{run_id}-{when}",
            )
