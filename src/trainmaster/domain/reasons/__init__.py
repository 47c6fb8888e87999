"""Reasons why a job waits: one class for each, registered in `REASONS`."""

from trainmaster.domain.reasons import capacity, rules
from trainmaster.domain.reasons.reason import REASONS, Reason

__all__ = ["REASONS", "Reason", "capacity", "rules"]
