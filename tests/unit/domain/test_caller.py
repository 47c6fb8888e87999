"""Principals of callers: the role or user, never a name that the caller chooses."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.domain.access.caller import UNKNOWN, Caller, principal_of

ROLE = "arn:aws:sts::111122223333:assumed-role/research"
NAMES = st.text(string.ascii_letters + string.digits + "+=,.@-_", min_size=2, max_size=64)


@pytest.mark.parametrize(
    ("arn", "principal"),
    [
        (f"{ROLE}/alice", ROLE),
        (f"{ROLE}/alice@example.com", ROLE),
        (
            "arn:aws-us-gov:sts::111122223333:assumed-role/AWSReservedSSO_Data_0a1b/alice",
            "arn:aws-us-gov:sts::111122223333:assumed-role/AWSReservedSSO_Data_0a1b",
        ),
        ("arn:aws:iam::111122223333:user/team/ada", "arn:aws:iam::111122223333:user/team/ada"),
        ("arn:aws:iam::111122223333:root", "arn:aws:iam::111122223333:root"),
        ("arn:aws:sts::111122223333:federated-user/bob", "arn:aws:sts::111122223333:federated-user"),
    ],
)
def test_the_principal_is_the_role_or_user(arn, principal):
    assert Caller(arn).principal == principal


@given(NAMES, NAMES)
def test_renaming_a_session_or_a_federated_user_keeps_the_principal(one, other):
    assert Caller(f"{ROLE}/{one}").principal == Caller(f"{ROLE}/{other}").principal == ROLE
    federated = "arn:aws:sts::111122223333:federated-user/"
    assert Caller(federated + one).principal == Caller(federated + other).principal != ""


@pytest.mark.parametrize(
    "arn",
    [
        "",
        "ada",
        f"{ROLE}/a/b",
        f"{ROLE}/a b",
        f"{ROLE}/a:b",
        f"{ROLE}/",
        "arn:aws:iam::1:user/ada",
        ROLE + "/" + "x" * 3000,
    ],
)
def test_what_is_not_a_callers_arn_has_no_principal(arn):
    assert principal_of(arn) == ""
    assert UNKNOWN.principal == ""


@given(st.text())
def test_any_text_has_a_principal_or_none(text):
    assert text.startswith(principal_of(text))
