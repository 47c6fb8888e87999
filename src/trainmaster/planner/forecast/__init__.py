"""The planner run forward: estimated starts."""
