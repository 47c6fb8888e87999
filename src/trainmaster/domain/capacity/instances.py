"""How many accelerators an ML instance type has, for what is counted in GPU-seconds and GPU-hours.

From what ships with us; a pool's own `accelerators` says otherwise. It must not know what was learned since
(`catalogue.py`): what has been counted must not change with it.
"""

from __future__ import annotations

from trainmaster.domain.capacity.instance_table import SHIPPED


def accelerators_of(instance_type: str) -> int:
    """Accelerators of one instance; 1 for a type that has none, and for one that is not known."""
    kind = SHIPPED.get(instance_type)
    return max(1, kind.accelerators) if kind is not None else 1
