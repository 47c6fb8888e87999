"""Makes boto3 clients, for the queue's own account and under other roles, with its time-outs and retries."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.dynamodb.encoding.plain_values import take_values_as_they_are
from trainmaster.domain.release import VERSION
from trainmaster.ports.runtime import Clock

if TYPE_CHECKING:
    from boto3 import Session
    from botocore.config import Config

    from trainmaster.adapters.sts import Roles


def config_of(service: str, tries: int) -> Config:
    """Return a client's time-outs and retries, without what costs each call a fifth of its processor time.

    botocore otherwise puts the name of the client program together again for each call, and compares each value for
    DynamoDB with its model, which `adapters.dynamodb` writes in that form anyway.
    """
    import botocore
    from botocore.config import Config

    return Config(
        retries={"mode": "standard", "total_max_attempts": tries},
        connect_timeout=2,
        read_timeout=10,
        parameter_validation=service != "dynamodb",
        user_agent=f"trainmaster/{VERSION} Botocore/{botocore.__version__}",
    )


class Clients:
    """The clients of one Lambda environment.

    Args:
        given: whose clients they are; None for a new session with botocore's own settings.
        clock: tells how long a role's credentials last.
        queue: the queue's name, the external ID under which roles are assumed.
    """

    def __init__(self, given: Session | None, clock: Clock, queue: str) -> None:
        self._given = given
        self._queue = queue
        self._clock = clock

    @cached_property
    def session(self) -> Session:
        """The session of our own account."""
        if self._given is not None:
            return self._given
        import boto3
        import botocore.session

        from trainmaster.adapters.sagemaker.service_model import use_trimmed_model

        # The runtime's boto3 may be older than the request's newest members, and the whole model is slow to load.
        return boto3.Session(botocore_session=use_trimmed_model(botocore.session.get_session()))

    def of(self, service: str, *, tries: int = 3, region: str | None = None, session: Session | None = None) -> Any:
        """Return a client that tries three times and gives up early: callers can repeat each use case as a whole."""
        given = session or self.session
        client = given.client(service, region_name=region, config=config_of(service, tries))  # type: ignore[call-overload]
        return take_values_as_they_are(client) if service == "dynamodb" else client

    def under(self, service: str, *, tries: int = 3) -> Callable[[str | None], Any]:
        """Return a service's clients by role, None for our own; each is kept while its role's credentials last."""
        last: dict[str | None, tuple[Session, Any]] = {}

        def client(role: str | None) -> Any:
            session = self._roles.session(role)
            if role not in last or last[role][0] is not session:
                last[role] = (session, self.of(service, tries=tries, session=session))
            return last[role][1]

        return client

    @cached_property
    def _roles(self) -> Roles:
        from trainmaster.adapters.sts import Roles

        return Roles(self.session, self.of("sts"), self._clock, self._queue)
