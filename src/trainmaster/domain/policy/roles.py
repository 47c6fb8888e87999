"""Rules on roles that callers may pass through the queue.

`adapters/iam.py` asks IAM whether the caller may pass the role. A malformed ARN or pattern is not allowed anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainmaster.domain.access.caller import principal_of
from trainmaster.domain.access.patterns import glob, matches

# Printable ASCII is what IAM allows in paths (IAM API reference, CreateRole); ':' cannot be told from an ARN's own.
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role(?:/[!-.0-9;-~]+)+")
_MAX_LENGTH = 2048


def may_pass(caller: str, role: str, allowed: tuple[str, ...], mapping: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether the deployment lets this caller pass this role through the queue.

    The role must match one of `allowed`; an empty `allowed` allows none. With an empty `mapping` that is all, and the
    caller does not matter. Otherwise the role must also match a pattern of an entry whose key matches the caller; a
    caller without an entry may pass nothing. Several matching entries add up.

    In every pattern `*` matches any characters, also none, and every other character, `?` and `[` too, matches itself;
    case counts; the whole ARN must match.

    In a role pattern `*` runs across `/`, as in the `Resource` of an IAM statement, where the same patterns limit the
    queue's own `iam:PassRole`: `arn:aws:iam::111122223333:role/team-a/*` covers deeper paths as well. The keys of
    `mapping` are patterns of callers (`domain.access.patterns`), in which it does not.

    A role that is not a well-formed ARN matches nothing, not even `*`: for example one with an empty, `.` or `..` part
    in its path, a wildcard, a blank or a control character.
    """
    if not is_role(role) or not any(glob(role, pattern) for pattern in allowed):
        return False
    if not mapping:
        return True
    granted = (patterns for who, patterns in mapping.items() if matches(principal_of(caller), (who,)))
    return any(glob(role, pattern) for patterns in granted for pattern in patterns)


def is_role(arn: str) -> bool:
    """Return whether a text is the ARN of an IAM role."""
    return len(arn) <= _MAX_LENGTH and _ROLE.fullmatch(arn) is not None and not _is_odd(arn)


def _is_odd(arn: str) -> bool:
    return "*" in arn or "?" in arn or bool({".", ".."} & set(arn.split("/")))
