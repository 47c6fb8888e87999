"""Names of jobs, queues and ARNs in Batch's API and in the queue.

The names of the queue are those of SageMaker: unique, at most 63 characters, without underscores. Batch's are neither,
so a name that is taken or that SageMaker does not accept gets a suffix: a hash of the request's `clientToken`, which
differs between two calls and is the same when a call is repeated.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.domain.jobs.names import MAX_NAME, STAMP

ID_PREFIX = "tm."
"""Begins the ids of the queue's jobs; those of Batch are UUIDs."""
_KEPT, _ALTERED = "b", "x"
_DIGITS = 10
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VALID = re.compile(rf"[a-zA-Z0-9](-*[a-zA-Z0-9]){{0,{MAX_NAME - 1}}}")
_MARKED = re.compile(rf"(.+)-([{_KEPT}{_ALTERED}])[0-9a-f]{{{_DIGITS}}}")


def candidate_names(job_name: str, token: str) -> Iterator[str]:
    """Yield the names in the queue under which to submit a job of this name, in order: the name itself if possible."""
    digest = hashlib.sha256(token.encode()).hexdigest()[:_DIGITS]
    is_valid = _VALID.fullmatch(job_name) is not None and STAMP not in job_name and not _MARKED.fullmatch(job_name)
    if is_valid:
        yield job_name
    stem = stem_of(job_name)
    yield f"{stem}-{_KEPT if is_valid and stem == job_name else _ALTERED}{digest}"


def stem_of(job_name: str) -> str:
    """Return the part of a name that stays in front of a suffix."""
    clean = re.sub(r"[^a-zA-Z0-9-]+", "-", job_name).replace(STAMP, "-").strip("-")
    return clean[: MAX_NAME - _DIGITS - 2].rstrip("-") or "job"


def batch_name_of(name: str) -> str | None:
    """Return the name at Batch of a job of the queue; None if its suffix says that the name was altered."""
    marked = _MARKED.fullmatch(name)
    if marked is None:
        return name
    return marked[1] if marked[2] == _KEPT else None


def stem_in(name: str) -> str:
    """Return the name of a job of the queue without its suffix."""
    marked = _MARKED.fullmatch(name)
    return marked[1] if marked else name


def token_digest(token: str) -> str:
    """Return what is kept of a client token: enough to tell two apart."""
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def is_id_of_batch(job_id: str) -> bool:
    """Return whether an id or ARN of a job can only be one of Batch's own."""
    last = _last_part(job_id)
    return not last.startswith(ID_PREFIX) and (":" in job_id or _UUID.fullmatch(last) is not None)


def job_in(job_id: str) -> str:
    """Return the name of a job of the queue from its ARN, its id or the name itself."""
    return _last_part(job_id).removeprefix(ID_PREFIX)


def is_own_id(job_id: str) -> bool:
    """Return whether an ARN or id says that it is one of the queue's jobs."""
    return _last_part(job_id).startswith(ID_PREFIX)


def queue_in(queue: str) -> str:
    """Return the name of a job queue from its ARN, the ARN of one of its quota shares, or the name itself."""
    return queue.rpartition("job-queue/")[2].partition("/quota-share/")[0]


def _last_part(job_id: str) -> str:
    return job_id.rpartition("service-job/")[2]


@dataclass(frozen=True, slots=True)
class Arns:
    """ARNs in an account and a Region.

    Attributes:
        partition: partition of AWS, such as `aws`.
        region: the Region of the client that asks.
        account: account of the queue, which is that of the roles of its jobs.
    """

    partition: str
    region: str
    account: str

    @classmethod
    def of_role(cls, role: str, region: str) -> Arns:
        """Return those of the account of a role's ARN."""
        _, partition, _, _, account, _ = role.split(":", 5)
        return cls(partition, region, account)

    def of_job(self, name: str) -> str:
        """Return the ARN of a job."""
        return self._of(f"service-job/{ID_PREFIX}{name}")

    def of_training_job(self, name: str) -> str:
        """Return the ARN of a training job at SageMaker."""
        return f"arn:{self.partition}:sagemaker:{self.region}:{self.account}:training-job/{name}"

    def of_queue(self, name: str) -> str:
        """Return the ARN of a job queue."""
        return self._of(f"job-queue/{name}")

    def of_share(self, queue: str, share: str) -> str:
        """Return the ARN of a quota share."""
        return f"{self.of_queue(queue)}/quota-share/{share}"

    def of_environment(self, name: str) -> str:
        """Return the ARN of a service environment."""
        return self._of(f"service-environment/{name}")

    def of_policy(self, name: str) -> str:
        """Return the ARN of a scheduling policy."""
        return self._of(f"scheduling-policy/{name}")

    def _of(self, resource: str) -> str:
        return f"arn:{self.partition}:batch:{self.region}:{self.account}:{resource}"
