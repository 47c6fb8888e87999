"""Shrinks a failing story to a short one that breaks the same rule: fewer acts, then a simpler configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from simulation.acts import Act, Submit
from simulation.story import Configuration, Story

MAX_PLAYS = 600
Fails = Callable[[Story], bool]


class _Enough(Exception):
    """The story was played often enough."""


def shrink(story: Story, fails: Fails, max_plays: int = MAX_PLAYS) -> Story:
    """Return the shortest story found that still fails.

    Args:
        story: a story that fails.
        fails: plays a story and returns whether it fails in the same way.
        max_plays: plays at most; the shortest story until then is returned.
    """
    return _Shrinker(story, fails, max_plays).run()


class _Shrinker:
    def __init__(self, story: Story, fails: Fails, plays: int) -> None:
        self.best, self._fails, self._plays = story, fails, plays

    def run(self) -> Story:
        try:
            while self._shorter_acts() | self._simpler_configuration() | self._simpler_acts():
                pass
        except _Enough:
            pass
        return self.best

    def _try(self, story: Story) -> bool:
        """Keep a story if it fails as well."""
        if self._plays == 0:
            raise _Enough
        self._plays -= 1
        if not self._fails(story):
            return False
        self.best = story
        return True

    def _shorter_acts(self) -> bool:
        """Remove acts, in ever smaller parts (Zeller and Hildebrandt, "Simplifying failure-inducing input", 2002)."""
        shorter, size = False, max(1, len(self.best.acts) // 2)
        while True:
            index = 0
            while index < len(self.best.acts):
                acts = self.best.acts
                if self._try(replace(self.best, acts=acts[:index] + acts[index + size :])):
                    shorter = True
                else:
                    index += size
            if size == 1:
                return shorter
            size //= 2

    def _simpler_configuration(self) -> bool:
        simpler = False
        for field in fields(Configuration):
            value = getattr(self.best.configuration, field.name)
            smaller = _without_one(value) if isinstance(value, tuple) else [0.0] if value else []
            for each in smaller:
                configuration = replace(self.best.configuration, **{field.name: each})
                if self._try(replace(self.best, configuration=configuration)):
                    simpler = True
                    break
        return simpler | self._shorter_day()

    def _shorter_day(self) -> bool:
        last = max((act.at for act in self.best.acts), default=0.0) / 3600
        for hours in (round(last + 0.1, 1), round(last + 1, 1)):
            if hours < self.best.hours and self._try(replace(self.best, hours=hours)):
                return True
        return False

    def _simpler_acts(self) -> bool:
        simpler = False
        for index in range(len(self.best.acts)):
            for act in _simpler(self.best.acts[index]):
                acts = self.best.acts
                changed = _with_default(acts[index], act)
                if changed != acts[index]:
                    simpler |= self._try(replace(self.best, acts=(*acts[:index], changed, *acts[index + 1 :])))
        return simpler


def _without_one(items: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    if items:
        yield ()
    if len(items) > 1:
        for index in range(len(items)):
            yield (*items[:index], *items[index + 1 :])


def _simpler(act: Act) -> Iterator[str]:
    """Yield names of members that may take their defaults."""
    kept = {"at", "name", "pool", "instance_type", "hook"}
    names = [field.name for field in fields(act) if field.name not in kept]
    yield from names if isinstance(act, Submit) else (name for name in names if name in ("hang", "queue"))


def _with_default(act: Act, name: str) -> Act:
    default = next(field.default for field in fields(act) if field.name == name)
    return replace(act, **{name: default})
