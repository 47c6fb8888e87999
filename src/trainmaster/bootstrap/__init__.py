"""Reads the environment once, into frozen `Settings`, and connects the adapters to the ports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.clock import SystemClock
from trainmaster.bootstrap.clients import Clients
from trainmaster.bootstrap.kinds import job_kinds
from trainmaster.bootstrap.settings import PREFIX, Settings, parse_pools
from trainmaster.bootstrap.threads import for_each_in_threads
from trainmaster.domain.events.callback import STEP, TASK
from trainmaster.domain.events.publication import BUS, TOPIC, Publication
from trainmaster.domain.policy.settings import Policy
from trainmaster.ports.callbacks import Description, Executions
from trainmaster.ports.events import Deliverer
from trainmaster.ports.permissions import Permissions
from trainmaster.ports.resizing import RendezvousControl, ResizeRequester
from trainmaster.ports.runtime import Clock, Publisher
from trainmaster.ports.sagemaker import Checkpoints, Launcher
from trainmaster.service.access import Access
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.callbacks.ends import EndDeliverer
from trainmaster.service.change import ApiContext
from trainmaster.service.context import EVENT, FUNCTION, ManagerContext
from trainmaster.service.events.delivery import Outbox
from trainmaster.service.kinds import AllPools, JobKind, KindLauncher

if TYPE_CHECKING:
    from boto3 import Session

    from trainmaster.adapters.dynamodb.store import DynamoStore
    from trainmaster.adapters.dynamodb.table import Table
    from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher
    from trainmaster.adapters.sagemaker.pipelines import PipelineSteps
    from trainmaster.adapters.stepfunctions import StepFunctions
    from trainmaster.domain.jobs.observation import Observation
    from trainmaster.ports.kinds import PoolDiscovery, Runs
    from trainmaster.service.callbacks.enter import Entrance
    from trainmaster.service.capacity.catalogue import CatalogueRefresher

__all__ = ["PREFIX", "Application", "Settings", "application", "parse_pools"]


class Application:
    """The parts of one Lambda environment, each made when it is first needed.

    Made late because a person waits for a cold start: the API never makes a SageMaker client.

    Args:
        settings: the deployment's settings.
        session: whose clients are used; a new one with botocore's own settings where none is given.
    """

    def __init__(self, settings: Settings, session: Session | None = None) -> None:
        self.settings = settings
        self.clock: Clock = SystemClock()
        self.clients = Clients(session, self.clock, settings.queue)

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self.settings.queue

    @cached_property
    def api_context(self) -> ApiContext:
        """Dependencies of the API's use cases."""
        retention = timedelta(days=self.settings.audit_retention_days)
        return ApiContext(self.checked_store, self.publisher, self.clock, self.access, audit_retention=retention)

    @cached_property
    def manager_context(self) -> ManagerContext:
        """Dependencies of the manager's use cases."""
        manager_context = ManagerContext(self.store, self.launcher, self.clock, table=self.settings.rendezvous_table)
        return replace(
            manager_context,
            checkpoints=self.checkpoints,
            job_retention=timedelta(days=self.settings.job_retention_days),
            audit_retention=timedelta(days=self.settings.audit_retention_days),
            rendezvous=self.rendezvous,
            resize_requesters=self.resize_requesters,
            kinds=self.runs,
            caller_rules=self.caller_rules,
            publication=self.publication,
        )

    @cached_property
    def access(self) -> Access:
        """The decision point of authorization."""
        return Access(
            admins=self.settings.admins,
            viewers=self.settings.viewers,
            stack=self.settings.stack,
            ceilings=self.settings.ceilings,
            permissions=self.permissions if self.settings.check_pass_role else None,
        )

    @cached_property
    def admission(self) -> AdmissionPolicy:
        """The deployment's rules for requests."""
        from trainmaster.adapters.sagemaker.request_model import problems

        return AdmissionPolicy(
            shape_problems=problems,
            rules=self.caller_rules,
            access=self.access,
            allow_non_preemptible=self.settings.allow_non_preemptible,
            notifies=self.publication.notifies,
        )

    @cached_property
    def caller_rules(self) -> CallerRules:
        """The deployment's rules on what the queue does for a caller."""
        settings = self.settings
        return CallerRules(
            allowed_roles=settings.allowed_roles,
            role_mapping=settings.role_mapping,
            request_policy=settings.request_policy,
            permissions=self.permissions if settings.check_pass_role or settings.check_create_training_job else None,
            checks_pass_role=settings.check_pass_role,
            training_jobs=settings.training_jobs if settings.check_create_training_job else "",
        )

    @cached_property
    def catalogue_refresher(self) -> CatalogueRefresher | None:
        """Reads instance types from AWS; None if the deployment does not want that."""
        if not self.settings.learn_instance_types:
            return None
        from trainmaster.adapters.catalogue.ec2 import Ec2InstanceTypes
        from trainmaster.adapters.catalogue.pricing import PriceList, endpoint_region
        from trainmaster.adapters.catalogue.service_quotas import ServiceQuotas
        from trainmaster.service.capacity.catalogue import CatalogueRefresher, Sources

        # Once each: where there is no way to them, waiting for a second time would cost the Lambda its time.
        types = Ec2InstanceTypes(lambda: self.clients.of("ec2", tries=1))
        quotas = ServiceQuotas(lambda: self.clients.of("service-quotas", tries=1))
        region = self.clients.session.region_name or ""
        prices = PriceList(lambda: self.clients.of("pricing", tries=1, region=endpoint_region(region)), region)
        return CatalogueRefresher(self.store, self.store, Sources(types, quotas, prices), self.clock)

    @cached_property
    def publication(self) -> Publication:
        """The events and notifications that the deployment publishes."""
        kinds = {
            kind: {name: each.types for name, each in made.recipients.items()} for kind, made in self.kinds.items()
        }
        return Publication(self.settings.events, notifies=bool(self.settings.notification_topic), kinds=kinds)

    @cached_property
    def outbox(self) -> Outbox:
        """Events and notifications that are to be delivered, and their recipients; clients are made on first use."""
        from trainmaster.adapters.eventbridge import EventBus
        from trainmaster.adapters.sns import Topic, notification_message

        settings = self.settings
        bus = EventBus(lambda: self.clients.of("events"), settings.event_bus, settings.training_jobs)
        topic = Topic(lambda: self.clients.of("sns"), settings.notification_topic, notification_message)
        of_kinds = {name: each.deliverer for kind in self.kinds.values() for name, each in kind.recipients.items()}
        return Outbox(self.store, {BUS: bus, TOPIC: topic, **self.ends, **of_kinds}, self.queue)

    @cached_property
    def ends(self) -> Mapping[str, Deliverer]:
        """Recipients of the ends of jobs that executions wait for."""
        settings = self.settings
        offered = ([(TASK, self.tasks)] if settings.step_functions else []) + (
            [(STEP, self.steps)] if settings.pipelines else []
        )
        return {name: EndDeliverer(self.store, executions, self.describe) for name, executions in offered}

    @property
    def delivers(self) -> bool:
        """True if the outbox may have rows."""
        return self.publication.enabled or bool(self.ends)

    @cached_property
    def tasks(self) -> StepFunctions:
        """Tasks of Step Functions that wait for jobs; a client is created on first use."""
        from trainmaster.adapters.stepfunctions import StepFunctions

        return StepFunctions(lambda: self.clients.of("stepfunctions"), self.clock.sleep)

    @cached_property
    def steps(self) -> PipelineSteps:
        """Callback steps of SageMaker Pipelines that wait for jobs; clients are created on first use."""
        from trainmaster.adapters.sagemaker.pipelines import PipelineSteps

        return PipelineSteps(lambda: self.clients.of("sagemaker"), lambda: self.clients.of("iam"))

    def entrance(self, executions: Executions) -> Entrance:
        """Return the dependencies of submissions for the executions of an orchestrator."""
        from trainmaster.service.callbacks.enter import Entrance

        return Entrance(self.api_context, self.admission, EndDeliverer(self.checked_store, executions, self.describe))

    def describe(self, training_job_name: str) -> Description | None:
        """Return the description of a training job; see `ports.callbacks.Describe`."""
        return self.training.description(training_job_name)

    @cached_property
    def store(self) -> DynamoStore:
        """The queue's memory, on DynamoDB."""
        from trainmaster.adapters.dynamodb.store import DynamoStore

        return DynamoStore(
            self.table,
            default_pools=parse_pools(self.settings.pools),
            parameter=self.settings.pools,
            policy=Policy(reservation_timeout=timedelta(seconds=self.settings.reservation_timeout_seconds)),
            discover=self._discover,
            publication=self.publication,
            now=self.clock.now,
            for_each=for_each_in_threads,
        )

    @cached_property
    def checked_store(self) -> DynamoStore:
        """The same, for the API, which begins no pass. Raises `UnsupportedSchema` at the cold start."""
        self.store.pause()
        return self.store

    @cached_property
    def publisher(self) -> Publisher:
        """The wake queue, on SQS."""
        from trainmaster.adapters.sqs import SqsPublisher

        return SqsPublisher(self.clients.of("sqs"), self.settings.wake_queue_url, self.settings.dead_letter_queue_url)

    @cached_property
    def launcher(self) -> Launcher:
        """SageMaker training jobs, and the runs of other kinds of jobs if the deployment has any."""
        return KindLauncher(self.training, self.runs) if self.runs else self.training

    @cached_property
    def training(self) -> SageMakerLauncher:
        """SageMaker training jobs; also the inventory of what the queue has created."""
        from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher

        return SageMakerLauncher(self.clients.of("sagemaker"), self.settings.queue)

    @cached_property
    def kinds(self) -> Mapping[str, JobKind]:
        """The kinds of jobs beside training jobs, by name."""
        return job_kinds(self)

    @cached_property
    def runs(self) -> Mapping[str, Runs]:
        """The runs of these kinds, by name."""
        return {name: kind.runs for name, kind in self.kinds.items() if kind.runs is not None}

    def _discover(self) -> PoolDiscovery:
        return AllPools(tuple(kind.discover() for kind in self.kinds.values()))

    @cached_property
    def checkpoints(self) -> Checkpoints | None:
        """Checkpoints of jobs, on S3; the client is created on first use."""
        from trainmaster.adapters.s3 import S3Checkpoints

        return S3Checkpoints(lambda: self.clients.of("s3"))

    @cached_property
    def rendezvous(self) -> RendezvousControl:
        """The rendezvous of elastic jobs, on DynamoDB."""
        from trainmaster.adapters.dynamodb.rendezvous.control import DynamoRendezvousControl
        from trainmaster.adapters.dynamodb.rendezvous.run_keys import RunKeys

        # Nodes write its rows too, with no schema version.
        table = replace(self._table_named(self.settings.rendezvous_table), schema=None)
        return DynamoRendezvousControl(table, self.clock, RunKeys(self.table))

    @cached_property
    def resize_requesters(self) -> Mapping[str, ResizeRequester]:
        """Those who ask others to resize jobs; a client is made when one first does."""
        from trainmaster.adapters.eventbridge import EventResizeRequester
        from trainmaster.adapters.lambda_hook import LambdaResizeRequester

        function = LambdaResizeRequester(lambda: self.clients.of("lambda", tries=1))
        return {FUNCTION: function, EVENT: EventResizeRequester(lambda: self.clients.of("events"))}

    def observation_of(self, event: Mapping[str, Any]) -> Observation | None:
        """Return the observation that an EventBridge event reports; None if it is about something else.

        Raises `InvalidRequest` for an event that cannot be read.
        """
        from trainmaster.adapters.sagemaker.observation import observation_of_event

        return observation_of_event(event, self.settings.queue)

    @cached_property
    def table(self) -> Table:
        """The queue's table."""
        return self._table_named(self.settings.table)

    def _table_named(self, name: str) -> Table:
        from trainmaster.adapters.dynamodb.table import Table

        return Table(self.clients.of("dynamodb"), name, self.clock.sleep)

    @cached_property
    def permissions(self) -> Permissions:
        """Answers of IAM's policy simulator about callers."""
        from trainmaster.adapters.iam import IamPermissions

        return IamPermissions(self.clients.of("iam"), self.clock)


@lru_cache(maxsize=1)
def application() -> Application:
    """Return the application of this Lambda environment, built once from its environment variables."""
    return Application(Settings.from_env(os.environ))
