"""A pipeline of one step, whose run has what a step operator is given."""

from __future__ import annotations

from zenml import pipeline, step


@step
def train() -> int:
    """Do nothing."""
    return 1


@pipeline(enable_cache=False)
def my_pipeline() -> None:
    """Run the step."""
    train()
