"""Tell the attempts' own training jobs from others that have the same names.

Training jobs share one namespace with every other user of the account. Before an attempt's create call is known to be
accepted, its name alone is no reason to adopt, stop or update a training job.
"""

from __future__ import annotations

from dataclasses import replace

from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job
from trainmaster.ports.sagemaker import Creator
from trainmaster.service.context import ManagerContext

OURS = frozenset({Creator.ATTEMPT, Creator.EARLIER_START})
"""Creators of training jobs that the queue may stop."""
UNSETTLED = frozenset({Creator.NONE, Creator.UNKNOWN})
"""Answers that can change while a create call may take effect, and tags become visible."""


def find_creator(context: ManagerContext, job: Job, name: str | None = None) -> Creator:
    """Return the creator of one of the newest attempt's training jobs, by default of the attempt's own.

    Takes a DescribeTrainingJob and a ListTags call. Raises `Throttled`, `Unavailable`, `NotPermitted`.
    """
    attempt = lifecycle.current(job)
    return context.launcher.creator(job, replace(attempt, training_job_name=name or attempt.training_job_name))
