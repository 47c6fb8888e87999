"""A rejected request for an image job that came through SQS, so its sender gets no response."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.domain.times import clock

RETENTION = timedelta(days=7)
"""Time for which a refusal is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A request that created no job.

    Attributes:
        job: the name of the job that it would have created.
        at: time of the refusal, UTC.
        reason: the problem and its remedy.
        field: path of the invalid field; "" without one.
    """

    job: str
    at: datetime
    reason: str
    field: str = ""

    def message(self) -> str:
        """Return the refusal as one sentence, with its reason."""
        where = f" for its field {self.field}" if self.field else ""
        told = f"A request of that name was refused at {clock(self.at)}{where}"
        return f"{told}, and is in the image dead-letter queue: {self.reason}"
