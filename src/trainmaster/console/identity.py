"""The AWS identity that the console signs with, and the time at which its credentials expire."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from trainmaster.domain.compat import UTC

if TYPE_CHECKING:
    import boto3

    from trainmaster.client.api.core_session import CoreSession


class Identity:
    """Finds the identity once, in the background: a network without STS must not delay the page.

    `find` returns the caller's ARN. `session` provides the credentials.
    """

    def __init__(self, session: Callable[[], Any], find: Callable[[Any], str] | None = None) -> None:
        self._session, self._find = session, find or caller_arn
        self._lock = Lock()
        self._arn: str | None = None
        self._asked = False

    def view(self) -> dict[str, Any]:
        """Return the ARN, None until it is known, and the expiry, None for credentials that do not expire."""
        with self._lock:
            ask, self._asked = not self._asked, True
        if ask:
            Thread(target=self._ask, name="console-identity", daemon=True).start()
        return {"arn": self._arn, "expiresAt": self._expiry()}

    def _ask(self) -> None:
        try:
            self._arn = self._find(self._session())
        except Exception:  # noqa: BLE001 - STS may be out of reach, or forbidden; the page then shows no name
            self._asked = False

    def _expiry(self) -> str | None:
        """Return the end of temporary credentials. Botocore has no public name for it."""
        try:
            moment = getattr(self._session().get_credentials(), "_expiry_time", None)
        except Exception:  # noqa: BLE001 - requests report what is wrong with the credentials
            return None
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if isinstance(moment, datetime) else None


def caller_arn(session: boto3.session.Session | CoreSession) -> str:
    """Return the ARN of the session's identity, as STS tells it. Raises what botocore raises."""
    return str(session.client("sts").get_caller_identity()["Arn"])
