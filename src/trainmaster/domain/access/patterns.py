"""Patterns of callers in the deployment's parameters and in the settings.

A pattern stands for principals (`caller.py`): roles and users, never names of sessions, which callers choose. `*`
stands for every caller, also an unknown one. The other forms, in which `*` matches any characters but `/` and `:`, are

- `arn:aws:iam::<account>:role/<name>` and `arn:aws:sts::<account>:assumed-role/<name>`: the sessions of roles. IAM
  shows the first form for a role, STS the second for its sessions; both mean the same here. A session's ARN lacks the
  role's path. Names are unique within an account, so a path before a name without `*` may be given and is ignored; with
  `*` it is refused, because the pattern would match roles outside that path.
- `arn:aws:iam::<account>:user/<path and name>`: users.
- `arn:aws:iam::<account>:root`: the root user.
- `arn:aws:sts::<account>:federated-user`: all federated users of the account, whose names callers choose.

Sources: IAM user guide, "IAM identifiers"; IAM API reference, CreateRole (names of roles are unique within an account,
letters' case aside).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

EVERYONE = "*"
_NAME = r"[\w+=,.@*-]{1,128}"
_PATH = r"(?:[!-)+-.0-9;-~]+/)*"
_HEAD = r"arn:(?P<partition>aws[a-z-]*|\*):{service}::(?P<account>[0-9*]{{1,12}}):"
_IAM, _STS = _HEAD.format(service="iam"), _HEAD.format(service="sts")
_ROLE = re.compile(rf"{_IAM}role/(?P<path>{_PATH})(?P<name>{_NAME})", re.ASCII)
_SESSIONS = re.compile(rf"{_STS}assumed-role/(?P<name>{_NAME})(?:/(?P<session>[!-.0-9;-~]+))?", re.ASCII)
_FEDERATED = re.compile(rf"{_STS}federated-user(?:/(?P<session>[!-.0-9;-~]+))?", re.ASCII)
_USER = re.compile(rf"{_IAM}(?:root|user(?:/[!-.0-9;-~]+)+)", re.ASCII)
_ACCOUNT_DIGITS = 12
_MAX_ROLE_NAME = 64
_MAX_LENGTH = 2048

_EXAMPLE = "arn:aws:iam::111122223333:role/vision-*"


def matches(principal: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the patterns stands for the principal; "" is an unknown one, which only `*` stands for."""
    return any(pattern == EVERYONE or _is_for(pattern, principal) for pattern in patterns)


def pattern_problem(pattern: str) -> tuple[str, str] | None:
    """Return what is wrong with a pattern that can match no caller or names a session, and a hint; None if it is right.

    The message continues a sentence that begins with the pattern.
    """
    if pattern == EVERYONE or (len(pattern) <= _MAX_LENGTH and _USER.fullmatch(pattern) and _has_account(pattern)):
        return None
    if len(pattern) <= _MAX_LENGTH and _has_account(pattern):
        if found := _ROLE.fullmatch(pattern):
            return _role_problem(found["path"], found["name"])
        if found := _SESSIONS.fullmatch(pattern) or _FEDERATED.fullmatch(pattern):
            return _session_problem(found)
    return "matches no caller", f"Specify * or the ARN of roles or users, such as {_EXAMPLE}."


def glob(text: str, pattern: str) -> bool:
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


def _is_for(pattern: str, principal: str) -> bool:
    """Match part by part, so that `*` stays within a part; a wrong pattern matches nothing."""
    if pattern_problem(pattern) is not None or "*" in principal:
        return False
    parts, patterns = re.split("[:/]", principal), re.split("[:/]", in_form_of_principals(pattern))
    return len(parts) == len(patterns) and all(map(glob, parts, patterns))


def in_form_of_principals(pattern: str) -> str:
    """Return a pattern, or an ARN, in the form of principals (`caller.principal_of`)."""
    if found := _ROLE.fullmatch(pattern) or _SESSIONS.fullmatch(pattern):
        return f"arn:{found['partition']}:sts::{found['account']}:assumed-role/{found['name']}"
    if found := _FEDERATED.fullmatch(pattern):
        return f"arn:{found['partition']}:sts::{found['account']}:federated-user"
    return pattern


def _has_account(pattern: str) -> bool:
    """Return whether an account's id can match the pattern's fifth part."""
    account = (pattern.split(":") + [""] * 5)[4]
    return "*" in account or len(account) == _ACCOUNT_DIGITS


def _role_problem(path: str, name: str) -> tuple[str, str] | None:
    if path and "*" in name:
        wrong = "has a path before a name with *, and a caller's ARN lacks its role's path"
        return wrong, f"Omit the path: role/{name}."
    return _name_problem(name)


def _session_problem(found: re.Match[str]) -> tuple[str, str] | None:
    if found["session"] not in (None, "*"):
        wrong = "names a session, and callers choose the names of their sessions"
        return wrong, "Specify the role only, without the session."
    return _name_problem(found["name"]) if "name" in found.re.groupindex else None


def _name_problem(name: str) -> tuple[str, str] | None:
    if len(name.replace("*", "")) > _MAX_ROLE_NAME:
        return "matches no caller", f"Names of roles have at most {_MAX_ROLE_NAME} characters."
    return None
