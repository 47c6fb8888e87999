"""Reads the environment once, into frozen Settings, and makes the adapters; nobody else does either.

It must not decide anything, nor be imported by the layers that it puts together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.clock import SystemClock
from trainmaster.bootstrap.clients import Clients
from trainmaster.bootstrap.settings import PREFIX, Settings, parse_pools
from trainmaster.domain.policy.settings import Policy
from trainmaster.images.domain.endpoint_set import caps_of
from trainmaster.images.service.metrics import Meter
from trainmaster.ports.resizing import RendezvousControl, ResizeRequester
from trainmaster.ports.runtime import Clock, Publisher
from trainmaster.ports.sagemaker import Checkpoints, Launcher
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.change import ApiContext
from trainmaster.service.context import EVENT, FUNCTION, ManagerContext

if TYPE_CHECKING:
    from boto3 import Session

    from trainmaster.adapters.dynamodb.store import DynamoStore
    from trainmaster.adapters.dynamodb.table import Table
    from trainmaster.domain.jobs.observation import Observation
    from trainmaster.images.adapters.endpoint_rows import DynamoEndpoints
    from trainmaster.images.pixels.wiring import Imaging
    from trainmaster.images.pixels.work.task import Queue as WorkerQueue
    from trainmaster.images.ports import Endpoints, ImageIntake, Refusals, RegionQueue, Runs
    from trainmaster.images.service.endpoints import Refresher
    from trainmaster.images.service.external_load import ExternalLoadMonitor
    from trainmaster.images.service.intake import Intake
    from trainmaster.images.service.launcher import ImageLauncher
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
        self._clients = Clients(session, self.clock)

    @cached_property
    def api_context(self) -> ApiContext:
        """What the API's use cases need."""
        return ApiContext(self.store, self.publisher, self.clock)

    @cached_property
    def manager_context(self) -> ManagerContext:
        """What the manager's use cases need."""
        manager_context = ManagerContext(self.store, self.launcher, self.clock, table=self.settings.table)
        return replace(
            manager_context,
            checkpoints=self.checkpoints,
            rendezvous=self.rendezvous,
            resize_requesters=self.resize_requesters,
            kinds={} if self.images is None else {"image": self.images},
        )

    @cached_property
    def admission(self) -> AdmissionPolicy:
        """The deployment's rules for requests."""
        from trainmaster.adapters.sagemaker.request_model import problems

        return AdmissionPolicy(
            shape_problems=problems,
            allowed_roles=self.settings.allowed_roles,
            role_mapping=self.settings.role_mapping,
            may_pass_role=self._ask_iam() if self.settings.check_pass_role else None,
            allow_non_preemptible=self.settings.allow_non_preemptible,
        )

    @cached_property
    def catalogue_refresher(self) -> CatalogueRefresher | None:
        """What asks AWS about instance types; None where the deployment does not want that."""
        if not self.settings.learn_instance_types:
            return None
        from trainmaster.adapters.catalogue.ec2 import Ec2InstanceTypes
        from trainmaster.adapters.catalogue.pricing import PriceList, endpoint_region
        from trainmaster.adapters.catalogue.service_quotas import ServiceQuotas
        from trainmaster.service.capacity.catalogue import CatalogueRefresher, Sources

        # Once each: where there is no way to them, waiting for a second time would cost the Lambda its time.
        types = Ec2InstanceTypes(lambda: self._clients.of("ec2", tries=1))
        quotas = ServiceQuotas(lambda: self._clients.of("service-quotas", tries=1))
        region = self._clients.session.region_name or ""
        prices = PriceList(lambda: self._clients.of("pricing", tries=1, region=endpoint_region(region)), region)
        return CatalogueRefresher(self.store, self.store, Sources(types, quotas, prices), self.clock)

    @cached_property
    def store(self) -> DynamoStore:
        """The queue's memory, on DynamoDB."""
        from trainmaster.adapters.dynamodb.store import DynamoStore

        return DynamoStore(
            self._table,
            default_pools=parse_pools(self.settings.pools),
            parameter=self.settings.pools,
            policy=Policy(reservation_timeout=timedelta(seconds=self.settings.reservation_timeout_seconds)),
            discover=self.known_endpoints.discover,
        )

    @cached_property
    def known_endpoints(self) -> DynamoEndpoints:
        """The endpoints of image jobs, on DynamoDB."""
        from trainmaster.images.adapters.endpoint_rows import DynamoEndpoints

        return DynamoEndpoints(self._table, caps_of(self.settings.limits, self.clock.now))

    @cached_property
    def publisher(self) -> Publisher:
        """The wake queue, on SQS."""
        from trainmaster.adapters.sqs import SqsPublisher

        return SqsPublisher(self._clients.of("sqs"), self.settings.wake_queue_url, self.settings.dead_letter_queue_url)

    @cached_property
    def launcher(self) -> Launcher:
        """SageMaker training jobs, and image jobs' runs where the deployment has image jobs."""
        from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher

        training = SageMakerLauncher(self._clients.of("sagemaker"), self.settings.queue)
        if self.images is None:
            return training
        from trainmaster.service.kinds import KindLauncher

        return KindLauncher(training, {"image": self.images})

    @cached_property
    def images(self) -> ImageLauncher | None:
        """Image jobs' runs; None where the deployment has no image jobs."""
        if not self.settings.region_queue_url or self.image_queue is None:
            return None
        from trainmaster.images.service.launcher import ImageLauncher

        settings = self.settings
        return ImageLauncher(self.store, self.runs, self.region_queue, self.image_queue, self.clock, settings.limits)

    @cached_property
    def runs(self) -> Runs:
        """The regions of image jobs, on DynamoDB."""
        from trainmaster.images.adapters.runs import DynamoRuns

        return DynamoRuns(self._table, self.clock)

    @cached_property
    def image_queue(self) -> ImageIntake | None:
        """The queue of image requests, on SQS; None where the deployment has no image jobs."""
        if not self.settings.image_queue_url:
            return None
        from trainmaster.images.adapters.sqs_requests import SqsImages

        return SqsImages(
            self._clients.of("sqs"), self.settings.image_queue_url, self.settings.image_dead_letter_queue_url
        )

    def check_model(self, url: str) -> None:
        """Raise `InvalidRequest` for a model's URL that no worker calls, where the address is written out in it."""
        from trainmaster.images.pixels.http.url_policy import check_model, written_out

        check_model(url, s3_endpoint=self._clients.of("s3").meta.endpoint_url, resolve=written_out)

    @cached_property
    def refusals(self) -> Refusals:
        """Requests for image jobs that were refused, on DynamoDB."""
        from trainmaster.images.adapters.refusals import DynamoRefusals

        return DynamoRefusals(self._table, self.clock)

    @cached_property
    def intake(self) -> Intake:
        """What taking image requests in needs; the layer with GDAL, too."""
        from trainmaster.images.service.intake import Intake

        return Intake(
            store=self.store,
            headers=self.imaging.headers,
            endpoints=self.endpoints,
            known=self.known_endpoints,
            clock=self.clock,
            limits=self.settings.limits,
            reachable=self.imaging.check_model,
            account=self.settings.account,
            vouching=self.settings.api_role_id,
        )

    @cached_property
    def refresher(self) -> Refresher | None:
        """What asks SageMaker after endpoints; None where the deployment has no image jobs."""
        if self.images is None:
            return None
        from trainmaster.images.service.endpoints import Refresher

        return Refresher(self.known_endpoints, self.endpoints, self.clock, self.settings.limits, self._neighbours())

    def _neighbours(self) -> ExternalLoadMonitor | None:
        """What looks after endpoints' other callers; None where nobody is to, or where capacity is not checked."""
        if not (self.settings.limits.watch_others and self.settings.limits.throttling):
            return None
        from trainmaster.images.adapters.cloudwatch import CloudWatchConcurrency
        from trainmaster.images.service.external_load import ExternalLoadMonitor

        # Once each: where there is no way to it, waiting for a second time would cost the manager its time.
        return ExternalLoadMonitor(
            self.known_endpoints, CloudWatchConcurrency(self._clients.under("cloudwatch", tries=1)), self.clock
        )

    @cached_property
    def endpoints(self) -> Endpoints:
        """SageMaker's endpoints, in other accounts under the roles that reach them."""
        from trainmaster.images.adapters.sagemaker_endpoints import SageMakerEndpoints

        return SageMakerEndpoints(self._clients.under("sagemaker"))

    @cached_property
    def meter(self) -> Meter:
        """Takes the figures of passes with image jobs."""
        return Meter()

    @cached_property
    def checkpoints(self) -> Checkpoints | None:
        """Where jobs save their work, on S3; its client is made when somebody first looks."""
        from trainmaster.adapters.s3 import S3Checkpoints

        return S3Checkpoints(lambda: self._clients.of("s3"))

    @cached_property
    def rendezvous(self) -> RendezvousControl:
        """The rendezvous of elastic jobs, on DynamoDB."""
        from trainmaster.adapters.dynamodb.rendezvous import DynamoRendezvousControl

        return DynamoRendezvousControl(self._table, self.clock)

    @cached_property
    def resize_requesters(self) -> Mapping[str, ResizeRequester]:
        """Those who ask others to resize jobs; a client is made when one first does."""
        from trainmaster.adapters.eventbridge import EventResizeRequester
        from trainmaster.adapters.lambda_hook import LambdaResizeRequester

        function = LambdaResizeRequester(lambda: self._clients.of("lambda", tries=1))
        return {FUNCTION: function, EVENT: EventResizeRequester(lambda: self._clients.of("events"))}

    @cached_property
    def region_queue(self) -> RegionQueue:
        """How workers learn of regions, on SQS."""
        from trainmaster.images.adapters.sqs_regions import SqsRegions

        return SqsRegions(self._clients.of("sqs"), self.settings.region_queue_url, self.clock.sleep)

    @cached_property
    def workers(self) -> WorkerQueue:
        """What those who work on regions of images share with the queue."""
        from trainmaster.images.adapters.sqs_progress import SqsProgress
        from trainmaster.images.pixels.work.task import Queue as WorkerQueue

        return WorkerQueue(
            runs=self.runs,
            regions=self.region_queue,
            endpoints=self.known_endpoints,
            tell=SqsProgress(self._clients.of("sqs"), self.settings.wake_queue_url, self.clock).tell,
            clock=self.clock,
            attempts=self.settings.limits.attempts,
        )

    @cached_property
    def imaging(self) -> Imaging:
        """Reads images, asks models, writes results; needs the layer with GDAL (ADR 0017)."""
        from trainmaster.images.pixels.wiring import Imaging

        return Imaging(self._clients.session, self.clock)

    def observation_of(self, event: Mapping[str, Any]) -> Observation | None:
        """What an EventBridge event says of a training job; None where it is about something else.

        Raises `InvalidRequest` for an event that cannot be read.
        """
        from trainmaster.adapters.sagemaker.observation import observation_of_event

        return observation_of_event(event, self.settings.queue)

    @cached_property
    def _table(self) -> Table:
        from trainmaster.adapters.dynamodb.table import Table

        return Table(self._clients.of("dynamodb"), self.settings.table, self.clock.sleep)

    def _ask_iam(self) -> Callable[[str, str], bool | None]:
        from trainmaster.adapters.iam import PassRoleChecker

        return PassRoleChecker(self._clients.of("iam"), self.clock).may_pass


@lru_cache(maxsize=1)
def application() -> Application:
    """The application of this Lambda environment, made from its environment variables once."""
    return Application(Settings.from_env(os.environ))
