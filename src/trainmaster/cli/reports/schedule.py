"""`trainmaster schedule`: shows past attempts, running jobs and planned starts as bars over time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.moments import WHEN, moment_option
from trainmaster.cli.common.names import check_pool
from trainmaster.cli.common.options import Json
from trainmaster.cli.output.fit import cut_middle
from trainmaster.cli.output.forms import Form, Output, csv_text
from trainmaster.cli.output.render import as_json, as_yaml, terminal_width
from trainmaster.cli.output.times import timestamp
from trainmaster.client.views.moments import parse_timestamp, zone_name
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainmaster.client.views.types import ScheduleIntervalView, SchedulePoolView, ScheduleView

_MARKS: Final = {
    "closed": "/",
    "external": "x",
    "warm": "w",
    "reserved": "~",
    "held": "+",
    "planned": "-",
    "past": "#",
    "running": "=",
}
"""The mark of each kind; later ones are drawn over earlier ones."""
_LEGEND: Final = "# ran  = runs  - planned  ~ reserved  + freed  w warm  x external  / closed  | now"
_WIDTH: Final = 100
"""Columns where the output is no terminal."""
_NAME_WIDTH: Final = 24
_MIN_BAR: Final = 30
_MIN_PERIOD: Final = timedelta(minutes=1)
"""Of the present and the future on a fitted axis."""
_MEMBERS: Final = (
    *("kind", "jobName", "jobState", "share", "priority", "units", "attempt", "outcome"),
    *("from", "fromLow", "fromHigh", "until", "untilLow", "untilHigh"),
)


def schedule(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    *,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help=f"Beginning of the period: {WHEN}. Default: a day, as far as there is anything.",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="TIME", help="End: a time, or a duration after now, as +12h. Default: +2d, likewise."
        ),
    ] = None,
    pool: Annotated[str | None, typer.Option(metavar="POOL", help="Only this pool.")] = None,
    rows: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum lines of a pool, those nearest to now.")] = 20,
    output: Output = Form.TABLE,
    json: Json = False,
) -> None:
    """Show past attempts, running jobs until their expected ends, and planned starts, by pool.

    Each line is a job with the most instances that it holds in the period, and a bar over time. Running bars end when
    the jobs are expected to end, and planned bars begin when they are expected to start; `trainmaster ls` shows the
    ranges of starts.
    """
    cli = cli_context(context)
    now = cli.now()
    with cli.api() as api:
        found = api.schedule(moment_option(start, now, "--from"), moment_option(end, now, "--to"), pool=pool)
        if not found["pools"]:
            check_pool(api, pool)
    form = Form.JSON if json else output
    if form in (Form.JSON, Form.YAML):
        typer.echo(as_json(found) if form is Form.JSON else as_yaml(found))
        return
    shown = sanitize(found)
    width = terminal_width() if cli.is_terminal(sys.stdout) else _WIDTH
    fits = start is None and end is None
    typer.echo(schedule_csv(shown) if form is Form.CSV else schedule_chart(shown, now, width, rows, fits=fits))
    if shown["more"] and form is Form.TABLE:
        typer.echo("More jobs wait, without a planned start: the queue is not read to its end.", err=True)


def schedule_csv(found: ScheduleView) -> str:
    """Return a row for each interval, with all its members."""
    rows = [[pool["name"], *(_values(each)[name] for name in _MEMBERS)] for pool, each in _intervals(found)]
    return csv_text(("pool", *_MEMBERS), rows)


def schedule_chart(found: ScheduleView, now: datetime, width: int, rows: int, *, fits: bool = False) -> str:
    """Return the bars of each pool below its name, and the meanings of the marks.

    Lines keep to the width if it leaves the bars enough columns. With `fits`, the axis leaves out the beginning and the
    end of the period in which nothing is.
    """
    lines = [_Line.of(pool, each) for pool, each in _intervals(found)]
    name_width = min(max([len(line.name) for line in lines], default=0), _NAME_WIDTH)
    units_width = max([len(str(line.units)) for line in lines], default=1)
    indent = name_width + units_width + 5
    axis = _Axis.of(found, max(width - indent, _MIN_BAR), fits=fits)
    text = [" " * indent + axis.labels(now)]
    for pool in found["pools"]:
        text += ["", _heading(pool)]
        merged = _merged([line for line in lines if line.pool == pool["name"]])
        shown = sorted(sorted(merged, key=lambda line: axis.distance(line.first))[:rows], key=lambda line: line.since)
        for line in shown:
            name = cut_middle(line.name, name_width).ljust(name_width)
            text.append(f"  {name}  {line.units:>{units_width}} {axis.bar(line.intervals)}".rstrip())
        left_out = len(merged) - len(shown)
        if left_out or pool["leftOut"]:
            text.append(f"  {left_out or 'some'} more: see --rows, --from, --to and -o csv")
    return "\n".join([*text, "", _LEGEND])


def _heading(pool: SchedulePoolView) -> str:
    cap = "no pool now" if pool["cap"] is None else f"cap {pool['cap']}"
    return f"{pool['name']} ({cap}{', draining' if pool['draining'] else ''})"


def _intervals(found: ScheduleView) -> Iterator[tuple[SchedulePoolView, ScheduleIntervalView]]:
    return ((pool, each) for pool in found["pools"] for each in pool["intervals"])


def _values(interval: ScheduleIntervalView) -> dict[str, Any]:
    return {**interval}


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a pool: a job, or what else holds its instances."""

    pool: str
    name: str
    units: int
    intervals: tuple[ScheduleIntervalView, ...]

    @classmethod
    def of(cls, pool: SchedulePoolView, interval: ScheduleIntervalView) -> _Line:
        """Return the line of one interval."""
        return cls(pool["name"], interval["jobName"] or f"({interval['kind']})", interval["units"], (interval,))

    @property
    def first(self) -> ScheduleIntervalView:
        """The first of its intervals that the present is in or before; the last one if it is over."""
        return next((each for each in self.intervals if each["kind"] != "past"), self.intervals[-1])

    @property
    def since(self) -> str:
        """The beginning of the line."""
        return self.intervals[0]["from"]


def _merged(lines: Sequence[_Line]) -> list[_Line]:
    """Return one line for each name, in the order of their beginnings."""
    found: dict[str, _Line] = {}
    for line in lines:
        known = found.get(line.name)
        units = line.units if known is None else max(known.units, line.units)
        intervals = line.intervals if known is None else (*known.intervals, *line.intervals)
        found[line.name] = _Line(line.pool, line.name, units, intervals)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Axis:
    """The axis of time, in columns."""

    since: datetime
    until: datetime
    at: datetime
    width: int

    @classmethod
    def of(cls, found: ScheduleView, width: int, *, fits: bool) -> _Axis:
        """Return the axis of a schedule's period, or of the part of it that has the present and the intervals."""
        since, until = parse_timestamp(found["from"]), parse_timestamp(found["to"])
        at = parse_timestamp(found["at"])
        if fits:
            shown = [each for _, each in _intervals(found)]
            first = min([parse_timestamp(each["from"]) for each in shown], default=since)
            last = max([parse_timestamp(each["until"] or found["to"]) for each in shown], default=until)
            since, until = max(since, min(first, at)), min(until, max(last, at + _MIN_PERIOD))
        return cls(since, until, at, width)

    def labels(self, now: datetime) -> str:
        """Return the ends of the axis, to the minute, with the zone between them."""
        since, until = (timestamp(end.isoformat(), now)[5:16] for end in (self.since, self.until))
        return since + f"({zone_name(now)})".center(self.width - len(since) - len(until)) + until

    def bar(self, intervals: Sequence[ScheduleIntervalView]) -> str:
        """Return the marks of these intervals; each has at least one column."""
        marks = [" "] * self.width
        if 0 <= (here := self._column(self.at)) < self.width:
            marks[here] = "|"
        for interval in sorted(intervals, key=lambda each: [*_MARKS].index(each["kind"])):
            first = self._column(parse_timestamp(interval["from"]))
            last = self.width if interval["until"] is None else self._column(parse_timestamp(interval["until"]))
            for column in range(max(first, 0), min(max(last, first + 1), self.width)):
                marks[column] = _MARKS[interval["kind"]]
        return "".join(marks)

    def distance(self, interval: ScheduleIntervalView) -> float:
        """Return the seconds between the present and an interval; 0 for one that contains it."""
        since = (parse_timestamp(interval["from"]) - self.at).total_seconds()
        if since > 0 or interval["until"] is None:
            return max(since, 0.0)
        return max((self.at - parse_timestamp(interval["until"])).total_seconds(), 0.0)

    def _column(self, at: datetime) -> int:
        return int((at - self.since) / (self.until - self.since) * self.width // 1)
