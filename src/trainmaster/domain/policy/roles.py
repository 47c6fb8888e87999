"""Rules on roles that callers may pass through the queue, and on callers that may use a share.

`adapters/iam.py` asks IAM whether the caller may pass the role. A malformed ARN or pattern is not allowed anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_ACCOUNT = r"arn:aws[a-z-]*:(?:iam|sts)::[0-9]{12}"
# Printable ASCII is what IAM allows in paths (IAM API reference, CreateRole); ':' cannot be told from an ARN's own.
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role(?:/[!-.0-9;-~]+)+")
_CALLER = re.compile(_ACCOUNT + r":(?:root|(?:user|assumed-role|federated-user)(?:/[!-.0-9;-~]+)+)")
_PATTERN = re.compile(
    r"arn:[a-z*-]+:(?:iam|sts|\*)::[0-9*]{1,12}:(?:root|(?:user|assumed-role|federated-user|\*)(?:/[!-.0-9;-~]+)+)"
)
_SESSION = re.compile(r"(.*:assumed-role/[^/]+)/[^/]+")
_MAX_LENGTH = 2048


def may_pass(caller: str, role: str, allowed: tuple[str, ...], mapping: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether the deployment lets this caller pass this role through the queue.

    The role must match one of `allowed`; an empty `allowed` allows none. With an empty `mapping` that is all, and the
    caller does not matter. Otherwise the role must also match a pattern of an entry whose key matches the caller; a
    caller without an entry may pass nothing. Several matching entries add up.

    In every pattern `*` matches any characters, also none, and every other character, `?` and `[` too, matches itself;
    case counts; the whole ARN must match.

    - In a role pattern `*` runs across `/`, as in the `Resource` of an IAM statement, where the same patterns limit the
      queue's own `iam:PassRole`: `arn:aws:iam::111122223333:role/team-a/*` covers deeper paths as well.
    - In a caller pattern `*` does not run across `/` or `:`. Callers choose the name of their session, and
      `assumed-role/*-admin` must not match the session `x-admin` of another role. A pattern for an assumed role may
      omit the session and then covers all sessions of the role; its form is that of the caller's own ARN,
      `arn:aws:sts::<account>:assumed-role/<name>`, which has no path.

    A role or caller that is not a well-formed ARN matches nothing, not even `*`: for example one with an empty, `.` or
    `..` part in its path, a wildcard, a blank or a control character.
    """
    if not is_role(role) or not any(_glob(role, pattern) for pattern in allowed):
        return False
    if not mapping:
        return True
    granted = (patterns for who, patterns in mapping.items() if _matches_caller(caller, who))
    return any(_glob(role, pattern) for patterns in granted for pattern in patterns)


def may_use(caller: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a caller may use a share with these patterns; an empty tuple allows every caller.

    The patterns are caller patterns as of `may_pass`: `*` does not run across `/` or `:`.
    """
    return not patterns or any(_matches_caller(caller, pattern) for pattern in patterns)


def is_role(arn: str) -> bool:
    """Return whether a text is the ARN of an IAM role."""
    return _well_formed(arn, _ROLE)


def is_caller_pattern(pattern: str) -> bool:
    """Return whether a caller could match the pattern; the sessions of a role do not have the role's ARN."""
    return len(pattern) <= _MAX_LENGTH and _PATTERN.fullmatch(pattern) is not None


def _well_formed(arn: str, form: re.Pattern[str]) -> bool:
    if len(arn) > _MAX_LENGTH or "*" in arn or "?" in arn or not form.fullmatch(arn):
        return False
    return not {".", ".."} & set(arn.split("/"))


def _matches_caller(caller: str, pattern: str) -> bool:
    """Match part by part, so that `*` stays within a part; for an assumed role also without its session."""
    if not _well_formed(caller, _CALLER):
        return False
    session = _SESSION.fullmatch(caller)
    names = [caller, session.group(1)] if session else [caller]
    return any(_parts_match(re.split("[:/]", name), re.split("[:/]", pattern)) for name in names)


def _parts_match(parts: list[str], patterns: list[str]) -> bool:
    return len(parts) == len(patterns) and all(map(_glob, parts, patterns))


def _glob(text: str, pattern: str) -> bool:
    """Return whether the text matches, where `*` matches any characters.

    Taking the first place of each piece in turn is enough, since only `*` varies. It needs no backtracking, which a
    pattern of many `*` could make endless.
    """
    first, *pieces = pattern.split("*")
    if not pieces:
        return text == pattern
    last = pieces.pop()
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    start, end = len(first), len(text) - len(last)
    for piece in pieces:
        found = text.find(piece, start, end)
        if found < 0:
            return False
        start = found + len(piece)
    return True
