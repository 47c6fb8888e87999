"""EventBridge events of status changes.

The shape is described in "Automating Amazon SageMaker AI with Amazon EventBridge" (SageMaker developer guide).
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from trainmaster.local.simulator.hostility.clock_offset import shift
from trainmaster.local.simulator.service.engine import Account
from trainmaster.local.simulator.service.state import StatusChange

Event = dict[str, Any]
Sink = Callable[[Event], None]
DETAIL_TYPE = "SageMaker Training Job State Change"
AWS_SOURCE = "aws.sagemaker"


@dataclass(frozen=True, slots=True)
class Envelope:
    """The common fields of all events of an account.

    Attributes:
        source: `aws.sagemaker`, or another source if the bus rejects sources of AWS, as EventBridge does.
        rng: source of event ids.
        offset: how far SageMaker's clock is ahead.
    """

    account: Account
    rng: random.Random
    source: str = AWS_SOURCE
    offset: timedelta = timedelta(0)

    def event_for(self, change: StatusChange) -> Event:
        """Return the event of a status change."""
        return {
            "version": "0",
            "id": str(uuid.UUID(int=self.rng.getrandbits(128), version=4)),
            "detail-type": DETAIL_TYPE,
            "source": self.source,
            "account": self.account.number,
            "time": (change.at + self.offset).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self.account.region,
            "resources": [change.arn],
            "detail": shift(change.detail, self.offset),
        }
