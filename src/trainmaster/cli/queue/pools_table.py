"""The table of pools: what people look at first in 100 columns, and everything where they ask for it.

It must not ask the API. The table is tabulate's; it is laid out here, since tabulate widens columns for its headings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainmaster.cli.output.times import stamp

if TYPE_CHECKING:
    from trainmaster.client.views.pools import PoolView


WIDTH: Final = 100
"""Lines are no longer, also on wider terminals, unless names are, or everything is wanted."""
_GAP: Final = 2
_SPARED: Final = ("Foreign", "Warm", "Held", "Weight")


@dataclass(frozen=True, slots=True)
class _Column:
    """One column: what it shows of a pool, whether as a figure, and whether it is left out where it says nothing."""

    heading: str
    shows: Callable[[PoolView], object]
    figure: bool = True
    plain: Callable[[PoolView], bool] | None = None


def pools_table(pools: Sequence[PoolView], *, wide: bool = False, width: int = WIDTH) -> str:
    """How each pool stands, in instances; unless `wide`, without what says least where lines would exceed `width`."""
    from tabulate import tabulate

    columns = _telling(_WIDE, pools) if wide else _in_width(_telling(_NEAR, pools), pools, width)
    cells = _cells(columns, pools)
    lines = [cells[0], ["-" * each for each in _widths(cells)], *cells[1:]]
    align = ["right" if column.figure else "left" for column in columns]
    return tabulate(lines, tablefmt="plain", disable_numparse=True, colalign=align)


def _telling(columns: Sequence[_Column], pools: Sequence[PoolView]) -> list[_Column]:
    return [each for each in columns if each.plain is None or not all(map(each.plain, pools))]


def _in_width(columns: list[_Column], pools: Sequence[PoolView], width: int) -> list[_Column]:
    """Fewer columns where lines would be too long: those of nothing but zeros first."""
    drop_redundant = sorted(
        (each for each in columns if each.heading in _SPARED), key=lambda each: _SPARED.index(each.heading)
    )
    for column in sorted(drop_redundant, key=lambda each: any(each.shows(pool) != 0 for pool in pools)):
        if sum(_widths(_cells(columns, pools))) + _GAP * (len(columns) - 1) > width:
            columns = [each for each in columns if each is not column]
    return columns


def _cells(columns: Sequence[_Column], pools: Sequence[PoolView]) -> list[list[str]]:
    """Headings, then a row for each pool."""
    headings = [column.heading for column in columns]
    return [headings, *([str(column.shows(pool)) for column in columns] for pool in pools)]


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def _type(pool: PoolView) -> str:
    """The type, with the kind where it is not on demand."""
    kind = {"on-demand": "", "training-plan": " plan"}.get(pool["kind"], f" {pool['kind']}")
    return (pool["instanceType"] + kind).strip()


def _kind(pool: PoolView) -> str:
    """The kind, and of a training plan from when or until when it can be used."""
    if pool["kind"] != "training-plan":
        return pool["kind"]
    status = (pool["planStatus"] or "unknown").lower()
    edge = {"active": ("until", pool["endsAt"]), "scheduled": ("from", pool["startsAt"])}.get(status, ("", None))
    return f"training plan, {status}" + (f" {edge[0]} {stamp(edge[1])}" if edge[1] else "")


def _state(pool: PoolView) -> str:
    """How it stands; of a training plan how that stands, unless the pool is being drained."""
    if pool["state"] != "in use":
        return pool["state"]
    if pool["kind"] == "training-plan":
        return (pool["planStatus"] or "unknown").lower()
    return "made" if pool["madeFor"] else pool["state"]


def _waiting(pool: PoolView) -> str:
    return f"{pool['waiting']}{'+' if pool['waitingMore'] else ''}"


def _beyond(pool: PoolView) -> int:
    return pool.get("beyondLeast", 0)


def _accelerators(pool: PoolView) -> str:
    maker = f" x {pool['accelerator']}" if pool["accelerator"] else ""
    return f"{pool['accelerators']}{maker}" if pool["accelerators"] else ""


def _gib(size: float) -> str:
    return f"{size:g}" if size else ""


def _price(pool: PoolView) -> str:
    price = pool["price"] or pool["onDemandPrice"]
    return f"{price:.2f}" if price else ""


_NAME: Final = _Column("Pool", lambda pool: pool["name"], figure=False)
_FIGURES: Final = (
    _Column("Cap", lambda pool: pool["cap"]),
    _Column("Used", lambda pool: pool["used"]),
    _Column("Beyond Least", _beyond, plain=lambda pool: not _beyond(pool)),
    _Column("Held", lambda pool: pool["held"]),
    _Column("Foreign", lambda pool: pool["foreign"]),
    _Column("Warm", lambda pool: pool["warm"]),
    _Column("Free", lambda pool: pool["free"]),
    _Column("Waiting", _waiting),
    _Column("Weight", lambda pool: f"{pool['weight']:.2f}"),
)
_NEAR: Final = (
    _NAME,
    _Column("Type", _type, figure=False, plain=lambda pool: _type(pool) == pool["name"]),
    _Column("State", _state, figure=False, plain=lambda pool: _state(pool) == "in use"),
    *_FIGURES,
)
_WIDE: Final = (
    _NAME,
    _Column("Type", lambda pool: pool["instanceType"], figure=False),
    _Column("Kind", _kind, figure=False),
    _Column("State", lambda pool: pool["state"], figure=False),
    *_FIGURES,
    _Column("Stopping", lambda pool: pool["stopping"]),
    _Column("Wanted", lambda pool: pool["waitingUnits"]),
    _Column("vCPUs", lambda pool: pool["vcpus"] or ""),
    _Column("GiB", lambda pool: _gib(pool["memoryGib"])),
    _Column("Accelerators", _accelerators),
    _Column("Their GiB", lambda pool: _gib(pool["acceleratorMemoryGib"])),
    _Column("$/h", _price),
    _Column("Counts Foreign", lambda pool: "yes" if pool["countForeign"] else "no", figure=False),
    _Column("Made For", lambda pool: pool["madeFor"] or "", figure=False, plain=lambda pool: not pool["madeFor"]),
)
