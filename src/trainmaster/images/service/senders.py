"""Callers of requests that are sent to the image queue directly: the deployment names the senders (`ImageSenders`).

SQS names a sender by the unique ID of its user or role, which is no ARN, and only IAM could translate it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from trainmaster.domain.access.caller import UNKNOWN, Caller, principal_of
from trainmaster.domain.access.patterns import EVERYONE, in_form_of_principals, pattern_problem
from trainmaster.domain.errors import InvalidRequest

SENDERS_SETTING = "IMAGE_SENDERS"
# IAM user guide, "IAM identifiers": unique IDs; SQS names the root user by the account's number.
_ID = re.compile(r"[A-Z0-9]{12,128}", re.ASCII)
_EXAMPLE = "AROAEXAMPLEEXAMPLE123=arn:aws:iam::111122223333:role/uploader"


@dataclass(frozen=True, slots=True)
class Senders:
    """Callers by the unique ID of the sender.

    Attributes:
        principals: ARN of the user, or of the role's sessions, by unique ID.
        others: whether other senders may send, as unknown callers.
    """

    principals: Mapping[str, str] = field(default_factory=dict)
    others: bool = False

    def caller(self, sender: str) -> Caller | None:
        """Return the caller that SQS's `SenderId` stands for, with its session; None for one that may not send."""
        identifier, _, session = sender.partition(":")
        principal = self.principals.get(identifier)
        if principal is None:
            return UNKNOWN if self.others else None
        arn = f"{principal}/{session}"
        return Caller(arn if session and principal_of(arn) == principal else principal)


def parse_senders(text: str) -> Senders:
    """Return the senders of a setting: `ID=ARN` for each, separated by blanks; `*` admits others as unknown callers.

    Raises `InvalidRequest`.
    """
    principals: dict[str, str] = {}
    for part in text.split():
        identifier, _, arn = part.partition("=")
        if part == EVERYONE:
            continue
        if not _ID.fullmatch(identifier) or "*" in arn or pattern_problem(arn):
            wrong = f"{part} is not the unique ID of a user or role with its ARN."
            raise InvalidRequest(wrong, field=SENDERS_SETTING, hint=f"For example: {_EXAMPLE}")
        principals[identifier] = in_form_of_principals(arn)
    return Senders(principals, others=EVERYONE in text.split())
