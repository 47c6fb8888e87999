"""The queue of regions for workers on SQS; implements `images.ports.RegionQueue`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.domain.errors import Throttled, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

MAX_MESSAGES = 10
"""Per SendMessageBatch (SQS API reference)."""
MAX_DELAY = 900
"""Maximum seconds of delay (SendMessage, `DelaySeconds`)."""
_TRIES = 3


class SqsRegions:
    """Sends to a standard queue, ten messages a call.

    Args:
        client: a boto3 SQS client.
        queue_url: the workers' queue.
        sleep: waits that many seconds before failed entries are sent again.
    """

    def __init__(self, client: SQSClient, queue_url: str, sleep: Callable[[float], None]) -> None:
        self._client = client
        self._queue_url = queue_url
        self._sleep = sleep

    def dispatch(self, job: str, attempt: int, numbers: Sequence[int], *, after: float = 0.0) -> None:
        """Send a message for each of these regions; see `images.ports.RegionQueue`. Also raises `NotPermitted`."""
        delay = min(max(0, round(after)), MAX_DELAY)
        for first in range(0, len(numbers), MAX_MESSAGES):
            self._send([_entry(job, attempt, number, delay) for number in numbers[first : first + MAX_MESSAGES]])

    def _send(self, entries: list[dict[str, Any]]) -> None:
        """Send a batch; entries that SQS reports as failed are sent again."""
        for number in range(_TRIES):
            if number:
                self._sleep(0.1 * 2**number)
            with translate_errors():
                answer = self._client.send_message_batch(QueueUrl=self._queue_url, Entries=entries)  # type: ignore[arg-type]
            failed = {each["Id"]: each for each in answer.get("Failed", [])}
            entries = [entry for entry in entries if entry["Id"] in failed]
            if not entries:
                return
        why = "; ".join(sorted({f"{each['Code']}: {each.get('Message', '')}" for each in failed.values()}))
        throttled = any("hrottl" in each["Code"] or "OverLimit" in each["Code"] for each in failed.values())
        raise (Throttled if throttled else Unavailable)(f"SQS rejected {len(entries)} regions: {why}")


def _entry(job: str, attempt: int, number: int, delay: int) -> dict[str, Any]:
    body = json.dumps({"job": job, "attempt": attempt, "region": number}, separators=(",", ":"))
    entry = {"Id": f"r{number}" if number >= 0 else "merge", "MessageBody": body}
    return entry | ({"DelaySeconds": delay} if delay else {})
