"""The planner: pure functions from a snapshot of the queue to a plan.

Start at `schedule.py`; `state.py` holds what has been decided, and `plan_builder.py` decides about one job. No clock,
no environment, no I/O and no global state.
"""
