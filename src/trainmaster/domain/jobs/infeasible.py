"""Jobs that no pool could hold, in listings."""

from __future__ import annotations

INFEASIBLE = "infeasible"
"""Shown as the state of such jobs. It is not a stored state, since it follows from the pools."""
NEVER_FIT = frozenset({"Infeasible", "CanNeverFit"})
"""Types of the reasons of such jobs: those that request resources, and those that name pools."""
