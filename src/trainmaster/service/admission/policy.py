"""Admission: check a request, and build its job or refuse it with the field that is wrong. Nothing is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.ceilings import job_problems, priority_problem
from trainmaster.domain.access.redaction import check_shown
from trainmaster.domain.capacity.catalogue import AS_SHIPPED, Catalogue
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Pool
from trainmaster.domain.elastic.sizes import Elastic
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.policy.settings import Policy, Share
from trainmaster.domain.requests.elastic.bounds import elastic_of
from trainmaster.domain.requests.elastic.rules import check_pools, elastic_warnings, form_problems
from trainmaster.domain.requests.fields import Problem
from trainmaster.domain.requests.option_rules import limit_problems, option_problems
from trainmaster.domain.requests.options import Options
from trainmaster.domain.requests.pools import demand_in, for_pool, pool_warnings
from trainmaster.domain.requests.resource_text import sendable
from trainmaster.domain.requests.resources import named_types
from trainmaster.domain.requests.storage import storage_warnings
from trainmaster.domain.requests.tags import misspelt, option_field, options_of, priority_field
from trainmaster.domain.requests.training_job import meaning_problems
from trainmaster.domain.requests.warnings import warnings
from trainmaster.ports.store import Request
from trainmaster.service.access import NO_ADMINS, Access
from trainmaster.service.admission.build_job import build_job
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.feasibility import FeasibilityCheck
from trainmaster.service.admission.shares import check_share, share_warnings

_DEFAULT_POLICY = Policy()
_NO_TOPIC = (
    "trainmaster:notify has no effect here: the deployment has no topic for notifications (parameter "
    "NotificationTopicArn)."
)


@dataclass(frozen=True, slots=True)
class Admission:
    """An admitted request: its job, and advice about it."""

    job: Job
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """The admission rules of a deployment.

    Attributes:
        shape_problems: checks a request against SageMaker's service model.
        rules: the rules on what the queue does for a caller.
        access: decides who may submit to a share, and has the ceilings of the deployment.
        allow_non_preemptible: whether the tag `trainmaster:preemptible=false` is accepted.
        notifies: whether there is a topic for the changes that jobs name in the tag `trainmaster:notify`.
    """

    shape_problems: Callable[[Request], Sequence[Problem]]
    rules: CallerRules = field(default_factory=CallerRules)
    access: Access = NO_ADMINS
    allow_non_preemptible: bool = True
    notifies: bool = False

    def admit(  # noqa: PLR0913 - the request and everything it is checked against
        self,
        request: Request,
        caller: Caller,
        pools: Mapping[str, Pool],
        now: datetime,
        policy: Policy = _DEFAULT_POLICY,
        *,
        catalogue: Catalogue = AS_SHIPPED,
    ) -> Admission:
        """Check a request and return its job; the jobs that it runs after are not checked here.

        Args:
            request: JSON values as received.
            caller: the caller.
            pools: the pools in force.
            now: entry time, UTC.
            policy: the settings in force.
            catalogue: the known instance types.

        Raises `InvalidRequest`, `UnknownOption`, `RoleNotAllowed`, `RequestNotAllowed`, `ShareNotAllowed`, `NeverFits`.
        """
        check_shown(request)
        self._check_form(request, pools)
        options = options_of(request)
        self._check_options(request, options, policy.shares.get(options.share))
        for problem in [*option_problems(request, options), *limit_problems(request, options, policy)]:
            raise problem.refusal()
        check_share(self.access, caller, request, options.share, policy)
        elastic = self._elastic(request, options)
        size = None if elastic is None else elastic.min_instances
        demand = demand_in(request, options.pools, pools, options.resources, catalogue, instances=size)
        feasibility = FeasibilityCheck(pools, policy.expansion, catalogue).check(request, demand)
        sent = self._check_form_for_pools(request, demand, pools, catalogue)
        self.rules.check(request, caller.arn or "", sent)
        job = build_job(request, options, demand, caller, now, elastic=elastic)
        for problem in job_problems(job, policy.shares.get(options.share), pools, catalogue):
            raise problem.refusal()
        advice = [*warnings(request, preemptible=options.preemptible), *pool_warnings(request, demand, pools)]
        advice += [_NO_TOPIC] if options.notify and not self.notifies else []
        advice += storage_warnings(request, demand, pools, catalogue)
        if elastic is not None:
            check_pools(request, elastic, demand, pools)
            advice += elastic_warnings(request, elastic, demand, pools)
        return Admission(job, (*feasibility, *share_warnings(job, policy, pools), *advice))

    def _elastic(self, request: Request, options: Options) -> Elastic | None:
        """Return the job's elastic sizes, None if it is not elastic. Raises `InvalidRequest`."""
        elastic = elastic_of(request, options)
        for problem in form_problems(request, elastic) if elastic is not None else ():
            raise problem.refusal()
        return elastic

    def _check_form(self, request: Request, pools: Mapping[str, Pool]) -> None:
        """Raise `InvalidRequest` for the first problem; a pool's instance type is valid even if the model lacks it."""
        there, named = {pool.instance_type for pool in pools.values()}, named_types(request)
        known = {field for field, name in named.items() if name in there}
        for problem in [*self.shape_problems(sendable(request)), *misspelt(request), *meaning_problems(request)]:
            if problem.field not in known:
                raise problem.refusal()

    def _check_form_for_pools(
        self, request: Request, demand: Demand, pools: Mapping[str, Pool], catalogue: Catalogue
    ) -> list[Request]:
        """Check the request as it would be sent for each pool that the queue may choose, and return these requests.

        Without such a pool, check it for one that could be created: a request that is invalid in any pool is refused
        at once.
        """
        if not demand.queue_selects_pool:
            return [request]
        there = [
            (pools[name], count) for units in demand.alternatives for name, count in units.items() if name in pools
        ]
        sent: list[Request] = []
        for pool, count in there or _creatable(catalogue, demand.resources, demand.instances):
            sent.append(for_pool(request, pool, count))
            self._check_form(sent[-1], {**pools, pool.name: pool})
        return sent

    def _check_options(self, request: Request, options: Options, share: Share | None) -> None:
        """Raise `InvalidRequest` for a priority, or a job that may not be preempted, above a ceiling."""
        problem = priority_problem(options.priority, priority_field(request), self.access.ceilings, share)
        if problem is not None:
            raise problem.refusal()
        if options.preemptible or (self.allow_non_preemptible and (share is None or share.allow_non_preemptible)):
            return
        if self.allow_non_preemptible:
            raise InvalidRequest(
                f"The share {options.share} does not accept jobs that may not be preempted.",
                field=option_field(request, "preemptible"),
                hint=f"Omit the tag, or ask the queue's admins to set shares.{options.share}.allowNonPreemptible.",
            )
        raise InvalidRequest(
            "This queue does not accept jobs that may not be preempted.",
            field=option_field(request, "preemptible"),
            hint="Omit the tag, or ask the queue's administrator to set AllowNonPreemptible.",
        )


def _creatable(catalogue: Catalogue, asked: Resources | None, count: int) -> Iterator[tuple[Pool, int]]:
    """Yield a pool that could be created for a demand by resources, with the instances that the demand takes of it.

    One suffices, since no check depends on the instance type.
    """
    kind = next(catalogue.covering(asked), None) if asked is not None else None
    if kind is not None:
        yield Pool(kind.name, count), count
