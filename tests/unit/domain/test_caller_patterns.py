"""Patterns of callers: which principals they stand for, and which patterns can stand for none."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainmaster.domain.access.caller import principal_of
from trainmaster.domain.access.patterns import glob, matches, pattern_problem

IAM = "arn:aws:iam::111122223333"
STS = "arn:aws:sts::111122223333"
ALICE = f"{IAM}:user/alice"
SESSION = f"{STS}:assumed-role/TeamA/alice"
NAMES = st.text(string.ascii_letters + string.digits + "+=,.@-_", min_size=2, max_size=64)


@pytest.mark.parametrize(
    ("caller", "pattern"),
    [
        (ALICE, ALICE),
        (ALICE, f"{IAM}:user/*"),
        (ALICE, "arn:aws:iam::*:user/alice"),
        (ALICE, "*"),
        ("", "*"),
        (f"{IAM}:user/team/alice", f"{IAM}:user/team/*"),
        (f"{IAM}:root", f"{IAM}:root"),
        (SESSION, f"{STS}:assumed-role/TeamA"),
        (SESSION, f"{STS}:assumed-role/TeamA/*"),
        (SESSION, f"{STS}:assumed-role/Team*"),
        (SESSION, f"{STS}:assumed-role/Team*/*"),
        (SESSION, f"{IAM}:role/TeamA"),
        (SESSION, f"{IAM}:role/T*A"),
        (SESSION, f"{IAM}:role/*"),
        (SESSION, f"{IAM}:role/some/path/TeamA"),
        (SESSION, "arn:*:iam::1111*:role/TeamA"),
        (f"{STS}:federated-user/bob", f"{STS}:federated-user"),
        (f"{STS}:federated-user/bob", f"{STS}:federated-user/*"),
    ],
)
def test_stands_for(caller: str, pattern: str) -> None:
    assert pattern_problem(pattern) is None
    assert matches(principal_of(caller), (f"{IAM}:user/other", pattern))


@pytest.mark.parametrize(
    ("caller", "pattern"),
    [
        (ALICE, f"{IAM}:user/bob"),
        (ALICE, f"{IAM}:user/ALICE"),
        (ALICE, f"{IAM}:role/alice"),
        (f"{IAM}:user/team/alice", f"{IAM}:user/*"),
        # The session's name is the caller's own choice.
        (f"{STS}:assumed-role/intern/x-admin", f"{STS}:assumed-role/*-admin"),
        (f"{STS}:assumed-role/intern/TeamA", f"{IAM}:role/TeamA"),
        (f"{STS}:assumed-role/intern/TeamA", f"{IAM}:role/intern/TeamA"),
        (SESSION, f"{IAM}:user/TeamA"),
        (SESSION, "arn:aws:iam::444455556666:role/TeamA"),
        (SESSION, "arn:aws-cn:iam::111122223333:role/TeamA"),
        ("", f"{IAM}:user/*"),
    ],
)
def test_does_not_stand_for(caller: str, pattern: str) -> None:
    assert pattern_problem(pattern) is None
    assert not matches(principal_of(caller), (pattern,))


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "alice",
        "**",
        "arn:*",
        "arn:aws:iam::1:role/vision",
        f"{IAM}:assumed-role/TeamA",
        f"{STS}:role/TeamA",
        f"{STS}:user/alice",
        f"{STS}:assumed-role/Team A",
        f"{STS}:assumed-role/TeamA/alice",
        f"{STS}:assumed-role/TeamA/a*",
        f"{STS}:assumed-role/a/b/c",
        f"{STS}:federated-user/bob",
        f"{IAM}:role/path/Team*",
        f"{IAM}:role/*/TeamA",
        f"{IAM}:role/{'x' * 65}",
        f"{IAM}:user/",
        f"{IAM}:group/team",
        "arn:aws:s3:::bucket",
        f"{IAM}:user/" + "x" * 2048,
    ],
)
def test_what_can_match_no_principal_is_refused(pattern: str) -> None:
    assert pattern_problem(pattern) is not None
    assert not matches(principal_of(SESSION), (pattern,))


def test_the_hint_for_a_session_or_a_path_has_the_pattern_to_write() -> None:
    assert pattern_problem(f"{STS}:assumed-role/TeamA/alice")[1].endswith("without the session.")
    assert pattern_problem(f"{IAM}:role/team/v*")[1] == "Omit the path: role/v*."


@given(NAMES, NAMES)
def test_both_forms_of_a_role_stand_for_its_sessions_and_no_others(name: str, session: str) -> None:
    for pattern in (f"{IAM}:role/{name}", f"{STS}:assumed-role/{name}"):
        assert matches(principal_of(f"{STS}:assumed-role/{name}/{session}"), (pattern,))
        assert not matches(principal_of(f"{STS}:assumed-role/{name[:-1]}/{session}"), (pattern,))


short = st.text("ab*", max_size=8)


@given(short.map(lambda text: text.replace("*", "")), short)
@example("aba", "ab*ba")
@example("ab", "ab*b")
def test_star_means_what_it_means_to_a_regular_expression(text: str, pattern: str) -> None:
    expected = re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text) is not None
    assert glob(text, pattern) is expected


def test_many_stars_take_no_time() -> None:
    assert not glob("a" * 2000, "*a" * 1000 + "b")
