"""Names of the tags that the queue reads and writes, for users, clients, the queue and SageMaker alike."""

from __future__ import annotations

PRIORITY_TAG = "priority"
OPTION_PREFIX = "trainmaster:"
"""Prefix of the tags that are options."""
SHARE_TAG = f"{OPTION_PREFIX}share"
RESOURCES_TAG = f"{OPTION_PREFIX}resources"
ATTEMPT_TAGS = tuple(f"{OPTION_PREFIX}{name}" for name in ("queue", "job", "attempt", "start", "submitted-by"))
"""Tags that the queue puts on every attempt: `start` differs between two starts with the same number, and
`submitted-by` names the principal that submitted the job."""
