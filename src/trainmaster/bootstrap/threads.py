"""Threads for calls of AWS, which mostly wait for their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


def for_each_in_threads(call: Callable[[_T], _R], values: Iterable[_T]) -> list[_R]:
    """Return what a function returns for each value, in order, called in a thread for each.

    All calls have ended when this returns or raises, so that none goes on in a Lambda environment that is frozen.
    """
    given = list(values)
    if len(given) < 2:
        return [call(value) for value in given]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(given), thread_name_prefix="for-each") as pool:
        return list(pool.map(call, given))
