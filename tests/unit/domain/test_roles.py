"""Roles that patterns accept, and tricks that they refuse."""

from __future__ import annotations

import pytest

from trainmaster.domain.policy.roles import may_pass

ACCOUNT = "arn:aws:iam::111122223333"
ROLE = f"{ACCOUNT}:role/training"
ALICE = f"{ACCOUNT}:user/alice"


class TestAllowed:
    @pytest.mark.parametrize(
        ("role", "pattern"),
        [
            (ROLE, ROLE),
            (ROLE, "*"),
            (ROLE, f"{ACCOUNT}:role/*"),
            (ROLE, f"{ACCOUNT}:role/train*"),
            (ROLE, "arn:aws:iam::*:role/t*n*g"),
            (f"{ACCOUNT}:role/service-role/AmazonSageMaker-ExecutionRole-1", f"{ACCOUNT}:role/*"),
            (f"{ACCOUNT}:role/team-a/deep/x", f"{ACCOUNT}:role/team-a/*"),
            ("arn:aws-us-gov:iam::111122223333:role/x", "arn:aws-us-gov:iam::111122223333:role/x"),
        ],
    )
    def test_passes(self, role: str, pattern: str) -> None:
        assert may_pass(ALICE, role, (pattern,), {})

    @pytest.mark.parametrize(
        ("role", "pattern"),
        [
            (ROLE, f"{ACCOUNT}:role/Training"),
            (ROLE, f"{ACCOUNT}:role/train"),
            (ROLE, f"{ACCOUNT}:role/trainin?"),
            (ROLE, f"{ACCOUNT}:role/[t]raining"),
            (ROLE, f"{ACCOUNT}:role/training*x"),
            (ROLE, ""),
            (ROLE, "arn:aws:iam::999999999999:role/*"),
            (f"{ACCOUNT}:role/team-a/../admin", f"{ACCOUNT}:role/team-a/*"),
            (f"{ACCOUNT}:role/team-a/./admin", "*"),
            (f"{ACCOUNT}:role/team-a//admin", "*"),
            (f"{ACCOUNT}:role/", "*"),
            (f"{ACCOUNT}:role/*", "*"),
            (f"{ACCOUNT}:role/*", f"{ACCOUNT}:role/*"),
            (f"{ACCOUNT}:role/team-a/x:role/admin", "*"),
            (f"{ACCOUNT}:role/x\n", "*"),
            (f"{ACCOUNT}:role/x y", "*"),
            (f"{ACCOUNT}:role/\uff58", "*"),
            (f"{ACCOUNT}:user/x", "*"),
            ("arn:aws:iam::1:role/x", "*"),
            ("arn:aws:iam::\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661:role/x", "*"),
            (f"x{ROLE}", "*"),
            (f"{ACCOUNT}:role/" + "x" * 2048, "*"),
            ("", "*"),
        ],
    )
    def test_refused(self, role: str, pattern: str) -> None:
        assert not may_pass(ALICE, role, (pattern,), {})

    def test_no_pattern_allows_nothing(self) -> None:
        assert not may_pass(ALICE, ROLE, (), {})
        assert not may_pass(ALICE, ROLE, (), {"*": ("*",)})

    def test_any_of_several_patterns(self) -> None:
        assert may_pass(ALICE, ROLE, ("nothing", ROLE), {})


class TestMapping:
    def test_a_role_must_be_allowed_as_well_as_granted(self) -> None:
        assert not may_pass(ALICE, ROLE, (f"{ACCOUNT}:role/other",), {ALICE: (ROLE,)})
        assert not may_pass(ALICE, ROLE, (ROLE,), {ALICE: (f"{ACCOUNT}:role/other",)})
        assert not may_pass(ALICE, ROLE, (ROLE,), {ALICE: ()})

    def test_entries_add_up(self) -> None:
        mapping = {ALICE: (f"{ACCOUNT}:role/other",), f"{ACCOUNT}:user/a*": (ROLE,)}
        assert may_pass(ALICE, ROLE, ("*",), mapping)

    def test_a_caller_without_an_entry_gets_nothing(self) -> None:
        assert not may_pass(ALICE, ROLE, ("*",), {f"{ACCOUNT}:user/bob": ("*",)})
        assert not may_pass("", ROLE, ("*",), {f"{ACCOUNT}:user/*": ("*",)})


def test_many_stars_take_no_time() -> None:
    assert not may_pass(ALICE, f"{ACCOUNT}:role/" + "a" * 2000, ("*a" * 1000 + "b",), {})
