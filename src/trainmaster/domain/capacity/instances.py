"""Accelerators of instance types, for counting GPU-seconds and GPU-hours.

The numbers come from the shipped table, or from a pool's own `accelerators`, but not from the catalogue, so that
amounts already counted do not change when the catalogue does.
"""

from __future__ import annotations

from trainmaster.domain.capacity.instance_table import SHIPPED


def accelerators_of(instance_type: str) -> int:
    """Return the accelerators of an instance; 1 for a type without any, and for an unknown one."""
    kind = SHIPPED.get(instance_type)
    return max(1, kind.accelerators) if kind is not None else 1
