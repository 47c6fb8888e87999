"""Authorization: the one decision point of all use cases."""

from trainmaster.service.access.decision import NO_ADMINS, Access

__all__ = ["NO_ADMINS", "Access"]
