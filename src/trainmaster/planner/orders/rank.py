"""Who may displace whom is told by standings; a job's is what the order in force says. It must not know any job."""

from __future__ import annotations

PreemptionRank = tuple[int, ...]
"""(priority,) or (priority, -level): compared member by member, from the left; more is better."""
