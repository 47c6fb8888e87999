"""Preemption: candidates, eligible victims, the cheapest set, and how a blocked job reclaims units."""
