"""The caller of a use case, and the principal that it acts for.

Sources: IAM user guide, "IAM identifiers" (forms of the ARNs) and "Compare AWS STS credentials"; API Gateway developer
guide, "Variables for data models" (`$context.identity`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ACCOUNT = r"arn:aws[a-z-]*:(?:iam|sts)::[0-9]{12}"
# Printable ASCII is what IAM allows in names and paths (IAM API reference, CreateUser).
_SESSION = re.compile(rf"({_ACCOUNT}:assumed-role/[!-.0-9;-~]+)(?:/[!-.0-9;-~]+)?")
_FEDERATED = re.compile(rf"({_ACCOUNT}:federated-user)(?:/[!-.0-9;-~]+)?")
_USER = re.compile(rf"{_ACCOUNT}:(?:root|user(?:/[!-.0-9;-~]+)+)")
_MAX_LENGTH = 2048


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a use case, as API Gateway or SQS gives it.

    API Gateway passes no `SourceIdentity` for callers that IAM authorises, so the principal does not include it.

    Attributes:
        arn: ARN of the caller, with the name of its session; None if unknown.
        source_ip: IP address of the request; "" if unknown.
        user_agent: the client's own name; "" if unknown.
        request_id: API Gateway's id of the request; "" if unknown.
    """

    arn: str | None = None
    source_ip: str = ""
    user_agent: str = ""
    request_id: str = ""

    @property
    def principal(self) -> str:
        """ARN of the role or user without the session's name; "" if the caller is unknown.

        Callers choose the names of their sessions, and of their federated users, so neither is part of it.
        """
        return principal_of(self.arn or "")

    @property
    def name(self) -> str:
        """The caller as texts name it: the ARN with its session."""
        return self.arn or "an unknown caller"


UNKNOWN = Caller()
"""A caller that nothing is known of."""


def principal_of(arn: str) -> str:
    """Return the principal of a caller's ARN; "" if it is not the ARN of a user, a session or the root user."""
    if len(arn) > _MAX_LENGTH:
        return ""
    if found := _SESSION.fullmatch(arn) or _FEDERATED.fullmatch(arn):
        return found[1]
    return arn if _USER.fullmatch(arn) else ""
