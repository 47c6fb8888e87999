"""ServerFilling: of the first jobs that fill the pool, the widest go first (Grosof et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence


def server_filling(widths: Sequence[int], capacity: int) -> list[int]:
    """Return the places of jobs in the order in which they are given units.

    The shortest prefix whose widths fill the pool is sorted by width, widest first; the rest stays as it is. Placed
    greedily, widths that are powers of two then leave no unit of such a pool idle.

    Args:
        widths: of the jobs, in order.
        capacity: units of the pool; 0 or less for none.
    """
    count = total = 0
    while count < len(widths) and total < capacity:
        total += widths[count]
        count += 1
    places = list(range(len(widths)))
    return sorted(places[:count], key=lambda place: -widths[place]) + places[count:] if total > capacity else places
