"""The event that EventBridge would carry for a change of a training job's status.

The shape is AWS's (SDG/automating-sagemaker-with-eventbridge). It must not deliver: the sink does.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainmaster.local.simulator.service.engine import Account
from trainmaster.local.simulator.service.state import StatusChange

Event = dict[str, Any]
Sink = Callable[[Event], None]
DETAIL_TYPE = "SageMaker Training Job State Change"
AWS_SOURCE = "aws.sagemaker"


@dataclass(frozen=True, slots=True)
class Envelope:
    """What every event of one account has in common.

    Attributes:
        source: `aws.sagemaker`, or another where the bus refuses sources of AWS, as EventBridge does.
        rng: where the events' ids come from.
    """

    account: Account
    rng: random.Random
    source: str = AWS_SOURCE

    def event_for(self, change: StatusChange) -> Event:
        """The event that tells of this change."""
        return {
            "version": "0",
            "id": str(uuid.UUID(int=self.rng.getrandbits(128), version=4)),
            "detail-type": DETAIL_TYPE,
            "source": self.source,
            "account": self.account.number,
            "time": change.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self.account.region,
            "resources": [change.arn],
            "detail": dict(change.detail),
        }
