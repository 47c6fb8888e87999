"""Prints a failing story as a test, and the table of what was played."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import fields

from rich.console import Console
from rich.table import Table

from simulation.checks import Finding
from simulation.play import Result
from simulation.story import Story


def as_test(story: Story, findings: Iterable[Finding], player: Callable[..., Result] | None = None) -> str:
    """Return a module with a test that plays the story, with the module of the player's function `play`."""
    by_module: dict[str, set[str]] = {}
    for act in story.acts:
        by_module.setdefault(type(act).__module__, set()).add(type(act).__name__)
    played = "simulation.play" if player is None or player.__module__ == "simulation.command" else player.__module__
    by_module.setdefault(played, set()).add("play")
    by_module.setdefault("simulation.story", set()).update(("Configuration", "Pools", "Story"))
    imports = "".join(f"from {module} import {', '.join(sorted(by_module[module]))}\n" for module in sorted(by_module))
    told = "\n".join(f"    # {finding}" for finding in findings)
    body = str(story).replace("\n", "\n    ")
    return (
        f"{imports}\n\n"
        f"def test_story_of_seed_{story.seed}():\n{told}\n    story = {body}\n    assert not play(story).findings\n"
    )


def added(results: Iterable[Result]) -> Result:
    """Return the sums of several days."""
    total = Result()
    for result in results:
        for field in fields(Result):
            setattr(total, field.name, getattr(total, field.name) + getattr(result, field.name))
    return total


def show(console: Console, days: int, seconds: float, total: Result) -> None:
    """Print the table of what was played."""
    table = Table(title=f"{days} simulated days", show_header=False)
    rows = {
        "days per second": f"{days / max(seconds, 0.001):.1f}",
        "jobs": total.jobs,
        "attempts": total.attempts,
        "passes": total.passes,
        "jobs by end": _counted(total.states),
        "acts": _counted(total.acts),
        "faults": _counted(total.faults),
        "calls of SageMaker": _counted(total.calls),
        "findings": _counted(Counter(finding.kind for finding in total.findings)) or "none",
    }
    for name, value in rows.items():
        table.add_row(name, str(value))
    console.print(table)


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())
