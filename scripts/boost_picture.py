"""Draw `docs/explanation/gittins-boost.svg`: the boost of a job by the work that it is expected to need."""

from __future__ import annotations

import math
import sys
from pathlib import Path

from trainmaster.domain.policy.settings import Gittins
from trainmaster.planner.orders.gittins.boost import boost, horizon

TARGET = Path(__file__).parent.parent / "docs" / "explanation" / "gittins-boost.svg"
HOUR = 3_600.0
DAY = 24 * HOUR
DRAINS = (1, 2, 4)
"""Days in which the queue drains, one curve each."""
LEFT, TOP, WIDTH, HEIGHT = 70, 20, 560, 280
SHORTEST, LONGEST, MAX_DAYS, STEPS = 30.0, 2 * DAY, 12, 80
COLORS = ("#4878a8", "#c8743c", "#5a9367")
SCALE = ((60, "1 min"), (600, "10 min"), (HOUR, "1 h"), (6 * HOUR, "6 h"), (DAY, "1 day"))


def x_of(work: float) -> float:
    """Return the place of an amount of work, on a logarithmic scale."""
    return LEFT + WIDTH * math.log(work / SHORTEST) / math.log(LONGEST / SHORTEST)


def y_of(seconds: float) -> float:
    """Return the place of a boost."""
    return TOP + HEIGHT * (1 - seconds / DAY / MAX_DAYS)


def curve(days: int, color: str) -> str:
    """Return the curve of a queue that drains in so many days, with its name."""
    span = horizon(Gittins().average_weight, days * DAY)
    works = [SHORTEST * (LONGEST / SHORTEST) ** (step / STEPS) for step in range(STEPS + 1)]
    inside = [(x_of(work), y_of(boost(work, span))) for work in works if boost(work, span) <= MAX_DAYS * DAY]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in inside)
    x, y = inside[len(inside) // 3]
    return (
        f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>\n'
        f'<text x="{x + 8:.1f}" y="{y - 4:.1f}" fill="{color}">queue of {days} day{"s" * (days > 1)}</text>'
    )


def axes() -> list[str]:
    """Return the lines and labels of both axes."""
    bottom, right = TOP + HEIGHT, LEFT + WIDTH
    works = [f'<text x="{x_of(work):.1f}" y="{bottom + 18}" text-anchor="middle">{name}</text>' for work, name in SCALE]
    days = [
        f'<text x="{LEFT - 8}" y="{y_of(days * DAY) + 4:.1f}" text-anchor="end">{days} d</text>'
        for days in range(0, MAX_DAYS + 1, 3)
    ]
    middle = LEFT + WIDTH / 2
    what = "expected work, as time of the whole pool"
    return [
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#444"/>',
        *works,
        *days,
        f'<text x="{middle:.0f}" y="{bottom + 40}" text-anchor="middle">{what}</text>',
        f'<text x="{LEFT + 8}" y="{TOP + 4}">counts as arrived earlier by</text>',
    ]


def picture() -> str:
    """Return the picture as SVG."""
    lines = [curve(days, color) for days, color in zip(DRAINS, COLORS, strict=True)]
    body = "\n".join([*axes(), *lines])
    size = f'width="{LEFT + WIDTH + 30}" height="{TOP + HEIGHT + 60}"'
    style = 'font-family="sans-serif" font-size="13" fill="#222"'
    white = '<rect width="100%" height="100%" fill="#fff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{white}\n{body}\n</svg>\n'


def main() -> int:
    """Write the picture; return 0."""
    TARGET.write_text(picture())
    return 0


if __name__ == "__main__":
    sys.exit(main())
