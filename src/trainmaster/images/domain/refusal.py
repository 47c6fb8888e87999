"""A request for an image job that came by the queue and was refused: who sent it there has heard no answer.

It must not hold what the request asks for: that is in the dead-letter queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.domain.times import clock

KEPT = timedelta(days=7)
"""For how long it is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A request that has made no job.

    Attributes:
        job: the name that its job would have had.
        at: when it was refused, UTC.
        reason: what is wrong with it, and what to do.
        field: path of the member at fault; "" where there is none.
    """

    job: str
    at: datetime
    reason: str
    field: str = ""

    def message(self) -> str:
        """The refusal as a sentence, and what was said then."""
        where = f" for its field {self.field}" if self.field else ""
        told = f"A request of that name was refused at {clock(self.at)}{where}"
        return f"{told}, and is in the image dead-letter queue: {self.reason}"
