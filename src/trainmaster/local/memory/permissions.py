"""Permissions in memory, for tests and the local stack."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from trainmaster.ports.permissions import Context

_CALLER = re.compile(
    r"(?P<principal>arn:aws[a-z-]*:(?:iam|sts)::(?P<account>[0-9]{12}):(?:user/\S+|assumed-role/[^/\s]+))(?:/[^/\s]+)?"
)
_RESOURCE = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:(?P<account>[0-9]{12})?:[^\s*?]+")


@dataclass(frozen=True, slots=True)
class Grant:
    """An allowed action, or the answer None for one that IAM cannot answer.

    Attributes:
        principal: a pattern of users and roles; the latter as `arn:aws:sts::111122223333:assumed-role/NAME`.
        action: a pattern of actions.
        resource: a pattern of resources.
        context: required values of the question's condition keys, by the exact name.
        answer: True, or None if IAM cannot answer.
    """

    principal: str = "*"
    action: str = "*"
    resource: str = "*"
    context: Context = field(default_factory=dict)
    answer: bool | None = True

    def covers(self, principal: str, action: str, resource: str, context: Context) -> bool:
        """Return whether the grant is about this question."""
        asked = ((self.principal, principal), (self.action, action), (self.resource, resource))
        return all(fnmatchcase(value, pattern) for pattern, value in asked) and all(
            list(context.get(key, ())) == list(values) for key, values in self.context.items()
        )


class MemoryPermissions:
    """Answers from grants; without any, everything is allowed. The first grant that covers a question answers it."""

    def __init__(self, grants: Sequence[Grant] = (Grant(),)) -> None:
        self.grants = list(grants)
        self.asked: deque[tuple[str, str, str, Context]] = deque(maxlen=1000)
        """The latest questions: caller, action, resource, context."""

    def allows(self, caller_arn: str, action: str, resource: str, context: Context) -> bool | None:
        """Return the answer of the first grant; see `ports.Permissions.allows`."""
        self.asked.append((caller_arn, action, resource, context))
        caller, target = _CALLER.fullmatch(caller_arn), _RESOURCE.fullmatch(resource)
        if caller is None or target is None:
            return None
        if target["account"] not in (None, caller["account"]):
            return False
        answers = (each.answer for each in self.grants if each.covers(_principal(caller), action, resource, context))
        return next(answers, False)


def _principal(caller: re.Match[str]) -> str:
    whole = caller.group()
    return whole if ":user/" in whole else caller["principal"]
