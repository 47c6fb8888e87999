"""Views of the manager's state."""

from __future__ import annotations

from trainmaster.domain.restore import Restore
from trainmaster.handlers.models import manager as models
from trainmaster.service.restoring.maintenance import ManagerStatus


def manager_view(status: ManagerStatus) -> models.ManagerState:
    """Return the state of the manager as the API shows it."""
    pause = status.pause
    return models.ManagerState(
        pause=None if pause is None else models.ManagerPause(reason=pause.reason, by=pause.by, at=pause.at),
        restore=None if status.restore is None else _report(status.restore),
    )


def _report(restore: Restore) -> models.RestoreReport:
    return models.RestoreReport(
        asked_at=restore.asked_at,
        asked_by=restore.asked_by.principal,
        adopt=restore.adopt,
        compared_at=restore.compared_at,
        differences=[
            models.RestoreDifference(
                job=each.job,
                training_job=each.training_job,
                kind=each.kind,
                stored=each.stored,
                status=each.status,
                action=each.action,
            )
            for each in restore.differences
        ],
        left_out=restore.left_out,
        adopted=list(restore.adopted),
        failed=list(restore.failed),
    )
