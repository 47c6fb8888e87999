"""Senders to the image queue, and the callers that the deployment says they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.domain.access.caller import UNKNOWN, Caller
from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.service.senders import Senders, parse_senders

ROLE, USER = "AROAEXAMPLEEXAMPLE123", "AIDAEXAMPLEEXAMPLE123"
SESSIONS, ANN = "arn:aws:sts::111122223333:assumed-role/uploader", "arn:aws:iam::111122223333:user/people/ann"
NAMED = parse_senders(f"{ROLE}=arn:aws:iam::111122223333:role/tools/uploader {USER}={ANN}")


@pytest.mark.parametrize(
    ("sender", "arn", "principal"),
    [
        (f"{ROLE}:i-0123", f"{SESSIONS}/i-0123", SESSIONS),
        (ROLE, SESSIONS, SESSIONS),
        (USER, ANN, ANN),
        # A session's name that no caller can have does not hide the role.
        (f"{ROLE}:a/b", SESSIONS, SESSIONS),
        (f"{USER}:x", ANN, ANN),
    ],
)
def test_a_named_sender_is_the_caller_of_its_arn(sender: str, arn: str, principal: str) -> None:
    assert NAMED.caller(sender) == Caller(arn)
    assert Caller(arn).principal == principal


@given(st.text(max_size=30) | st.builds("{}{}".format, st.sampled_from([ROLE, USER]), st.text("AX1", min_size=1)))
def test_another_sender_is_no_caller_and_unknown_where_others_are_admitted(sender: str) -> None:
    assert NAMED.caller(sender) is None or sender.partition(":")[0] in NAMED.principals
    assert Senders(others=True).caller(sender) == UNKNOWN


@given(st.text(max_size=80))
def test_no_name_of_a_session_changes_the_principal(session: str) -> None:
    caller = NAMED.caller(f"{ROLE}:{session}")
    assert caller is not None
    assert caller.principal == SESSIONS


def test_others_may_be_admitted_beside_named_ones() -> None:
    senders = parse_senders(f"* {USER}={ANN}")
    assert (senders.caller(USER), senders.caller(ROLE)) == (Caller(ANN), UNKNOWN)
    assert parse_senders("  ") == Senders()


@pytest.mark.parametrize(
    "text",
    [ANN, f"{USER}=", f"={ANN}", f"{USER}={ANN}*", f"{USER}=ann", f"aida={ANN}", f"{USER}:x={ANN}",
     f"{ROLE}=arn:aws:sts::111122223333:assumed-role/uploader/session"],
)  # fmt: skip
def test_a_sender_without_its_id_or_the_arn_of_one_caller_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_senders(text)
    assert caught.value.field == "IMAGE_SENDERS"
