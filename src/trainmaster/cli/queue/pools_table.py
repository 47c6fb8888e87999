"""The table of pools: the main columns within 100 characters, or all columns.

The column widths are computed here, since tabulate widens columns for their headings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainmaster.cli.output.times import format_moment, timestamp

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.client.views.types import PoolView, ServiceLoadView


WIDTH: Final = 100
"""Maximum width, also on wider terminals, unless names are longer or `wide` is set."""
_GAP: Final = 2
_OPTIONAL_HEADINGS: Final = ("External", "Warm", "Held", "Weight")


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its value for a pool, whether it is a number, and for which pools it is blank."""

    heading: str
    value: Callable[[PoolView], object]
    is_number: bool = True
    is_blank: Callable[[PoolView], bool] | None = None


def pools_table(pools: Sequence[PoolView], now: datetime, *, wide: bool = False, width: int = WIDTH) -> str:
    """Return the table in instances; unless `wide`, lines keep to `width` by dropping optional columns.

    Times are in the zone of `now`.
    """
    from tabulate import tabulate

    pools = [_with_times(pool, now) for pool in pools]

    columns = (
        _informative(_WIDE_COLUMNS, pools) if wide else _fit_width(_informative(_DEFAULT_COLUMNS, pools), pools, width)
    )
    cells = _cells(columns, pools)
    lines = [cells[0], ["-" * length for length in _widths(cells)], *cells[1:]]
    align = ["right" if column.is_number else "left" for column in columns]
    return tabulate(lines, tablefmt="plain", disable_numparse=True, colalign=align)


def _with_times(pool: PoolView, now: datetime) -> PoolView:
    return {**pool, "startsAt": timestamp(pool["startsAt"], now), "endsAt": timestamp(pool["endsAt"], now)}


def _informative(columns: Sequence[_Column], pools: Sequence[PoolView]) -> list[_Column]:
    return [column for column in columns if column.is_blank is None or not all(map(column.is_blank, pools))]


def _fit_width(columns: list[_Column], pools: Sequence[PoolView], width: int) -> list[_Column]:
    """Drop optional columns while lines are too long, those with only zeros first."""
    optional = sorted(
        (column for column in columns if column.heading in _OPTIONAL_HEADINGS),
        key=lambda column: _OPTIONAL_HEADINGS.index(column.heading),
    )
    for dropped in sorted(optional, key=lambda column: any(column.value(pool) != 0 for pool in pools)):
        if sum(_widths(_cells(columns, pools))) + _GAP * (len(columns) - 1) > width:
            columns = [column for column in columns if column is not dropped]
    return columns


def _cells(columns: Sequence[_Column], pools: Sequence[PoolView]) -> list[list[str]]:
    """Return the headings, then a row per pool."""
    headings = [column.heading for column in columns]
    return [headings, *([str(column.value(pool)) for column in columns] for pool in pools)]


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def _type(pool: PoolView) -> str:
    """Return the instance type, with the kind unless it is on-demand."""
    kind = {"on-demand": "", "training-plan": " plan"}.get(pool["kind"], f" {pool['kind']}")
    return (pool["instanceType"] + kind).strip()


def _kind(pool: PoolView) -> str:
    """Return the kind; for a training plan, with its status and its start or end."""
    if pool["kind"] != "training-plan":
        return pool["kind"]
    status = (pool["planStatus"] or "unknown").lower()
    edge = {"active": ("until", pool["endsAt"]), "scheduled": ("from", pool["startsAt"])}.get(status, ("", None))
    return f"training plan, {status}" + (f" {edge[0]} {edge[1]}" if edge[1] else "")


def _state(pool: PoolView) -> str:
    """Return the pool's state; for a training plan its status, unless the pool is draining."""
    if pool["state"] != "in use":
        return pool["state"]
    if pool["kind"] == "training-plan":
        return (pool["planStatus"] or "unknown").lower()
    return "managed" if pool["madeFor"] else pool["state"]


def _waiting(pool: PoolView) -> str:
    return f"{pool['waiting']}{'+' if pool['waitingMore'] else ''}"


def quota_notes(pools: Sequence[PoolView], now: datetime) -> list[str]:
    """Return a sentence for each pool whose cap is above the account's quota."""
    return [
        f"{pool['name']}: its cap of {pool['cap']} is above the account's quota of {pool['quota']} x "
        f"{pool['instanceType']}, which SageMaker reported at {format_moment(str(pool['quotaAt']), now)}; "
        "the quota applies."
        for pool in pools
        if pool.get("quota") is not None
    ]


def load_notes(pools: Sequence[PoolView], now: datetime) -> list[str]:
    """Return a sentence for each service of which jobs may use less than it takes."""
    return [
        f"{pool['name']}: takes {load['capacity']} requests at once; jobs may make {pool['cap']}: {', '.join(causes)}."
        for pool in pools
        if (load := pool.get("load")) is not None and (causes := _reductions(load, now))
    ]


def _reductions(load: ServiceLoadView, now: datetime) -> list[str]:
    """Return the causes for which jobs may not use a service's whole capacity."""
    causes = []
    if load["target"] < 1:
        causes.append(f"the target is {load['target']:.0%}")
    if load["throttledAt"] is not None:
        causes.append(f"throttling at {format_moment(load['throttledAt'], now)} lowered it to {load['pressure']:.0%}")
    if load["external"]:
        causes.append(f"other callers make {load['external']}")
    return causes


def _load(pool: PoolView) -> ServiceLoadView | None:
    return pool.get("load")


def _load_column(heading: str, value: Callable[[ServiceLoadView], object]) -> _Column:
    """Return a column about the load of services; it is absent without services."""

    def of_pool(pool: PoolView) -> object:
        load = _load(pool)
        return "" if load is None else value(load)

    return _Column(heading, of_pool, is_blank=lambda pool: _load(pool) is None)


def _quota(pool: PoolView, blank: str | None = None) -> object:
    quota = pool.get("quota")
    return blank if quota is None else quota


def _beyond_minimum(pool: PoolView) -> int:
    return pool.get("beyondMinimum", 0)


def _accelerators(pool: PoolView) -> str:
    manufacturer = f" x {pool['accelerator']}" if pool["accelerator"] else ""
    return f"{pool['accelerators']}{manufacturer}" if pool["accelerators"] else ""


def _gib(size: float) -> str:
    return f"{size:g}" if size else ""


def _price(pool: PoolView) -> str:
    price = pool["price"] or pool["onDemandPrice"]
    return f"{price:.2f}" if price else ""


_NAME_COLUMN: Final = _Column("Pool", lambda pool: pool["name"], is_number=False)
_COUNT_COLUMNS: Final = (
    _Column("Cap", lambda pool: pool["cap"]),
    _Column("Quota", lambda pool: _quota(pool, blank=""), is_blank=lambda pool: _quota(pool) is None),
    _Column("Used", lambda pool: pool["used"]),
    _Column("Above Min", _beyond_minimum, is_blank=lambda pool: not _beyond_minimum(pool)),
    _Column("Held", lambda pool: pool["held"]),
    _Column("External", lambda pool: pool["external"]),
    _Column("Warm", lambda pool: pool["warm"]),
    _Column("Free", lambda pool: pool["free"]),
    _Column("Waiting", _waiting),
    _Column("Weight", lambda pool: f"{pool['weight']:.2f}"),
)
_DEFAULT_COLUMNS: Final = (
    _NAME_COLUMN,
    _Column("Type", _type, is_number=False, is_blank=lambda pool: _type(pool) == pool["name"]),
    _Column("State", _state, is_number=False, is_blank=lambda pool: _state(pool) == "in use"),
    *_COUNT_COLUMNS,
)
_WIDE_COLUMNS: Final = (
    _NAME_COLUMN,
    _Column("Type", lambda pool: pool["instanceType"], is_number=False),
    _Column("Kind", _kind, is_number=False),
    _Column("State", lambda pool: pool["state"], is_number=False),
    *_COUNT_COLUMNS,
    _load_column("Capacity", lambda load: load["capacity"]),
    _load_column("Target", lambda load: f"{load['target']:.0%}"),
    _load_column("Pressure", lambda load: f"{load['pressure']:.0%}"),
    _load_column("Other Callers", lambda load: load["external"]),
    _Column("Stopping", lambda pool: pool["stopping"]),
    _Column("Wanted", lambda pool: pool["waitingUnits"]),
    _Column("vCPUs", lambda pool: pool["vcpus"] or ""),
    _Column("GiB", lambda pool: _gib(pool["memoryGib"])),
    _Column("Accelerators", _accelerators),
    _Column("Their GiB", lambda pool: _gib(pool["acceleratorMemoryGib"])),
    _Column("$/h", _price),
    _Column("Counts External", lambda pool: "yes" if pool["countExternal"] else "no", is_number=False),
    _Column(
        "Created For", lambda pool: pool["madeFor"] or "", is_number=False, is_blank=lambda pool: not pool["madeFor"]
    ),
)
