"""Samples of long proofs for the usual run of the tests: a few of their cases, and fewer examples. The rest is slow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def sample(cases: Iterable[Any], usual: int = 1) -> list[Any]:
    """The cases, of which all after the first `usual` ones are slow; a tuple has the values of several arguments."""
    found = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=pytest.mark.slow if number >= usual else ()) for number, case in enumerate(found)]


def examples(count: int, **others: Any) -> settings:
    """Settings of Hypothesis that draw so many examples; in the usual run as few of them as its profile does of 100."""
    return settings(max_examples=-(-count * settings().max_examples // 100), **others)
