"""Store the account's quotas that SageMaker reports with refusals; they bound the pools until they lapse."""

from __future__ import annotations

import logging
from dataclasses import replace

from trainmaster.domain.capacity.reported_quotas import reported_quota
from trainmaster.domain.errors import AccountLimitReached, CapacityExhausted, ServiceError
from trainmaster.service.context import ManagerContext

log = logging.getLogger(__name__)


def note_quota(context: ManagerContext, refusal: CapacityExhausted) -> None:
    """Store the quota that a refused CreateTrainingJob reports, if it is new or the stored one has lapsed.

    Errors of the store are logged: without the quota, the job backs off and a later refusal reports it again.
    """
    now = context.clock.now()
    found = reported_quota(refusal, now) if isinstance(refusal, AccountLimitReached) else None
    if found is None:
        return
    name, quota = found
    try:
        catalogue = context.store.settings().catalogue
        known = catalogue.reported.get(name)
        if known is None or known.limit != quota.limit or now >= known.until:
            context.store.save_catalogue(replace(catalogue, reported={**catalogue.reported, name: quota}))
    except ServiceError as error:
        log.warning("could not store a quota", extra={"quota": name, "limit": quota.limit, "cause": str(error)})
