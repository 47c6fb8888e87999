"""Connects the adapters of image jobs to their ports; extends the queue's `bootstrap`."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from trainmaster.images.domain.endpoint_set import caps_of
from trainmaster.images.service.metrics import Meter
from trainmaster.images.settings import ImageSettings

if TYPE_CHECKING:
    from trainmaster.adapters.sns import Topic
    from trainmaster.bootstrap import Application
    from trainmaster.images.adapters.endpoint_rows import DynamoEndpoints
    from trainmaster.images.pixels.wiring import Imaging
    from trainmaster.images.pixels.work.task import Queue as WorkerQueue
    from trainmaster.images.ports import Endpoints, ImageIntake, Refusals, RegionQueue, Runs, Submissions
    from trainmaster.images.service.endpoints import Refresher
    from trainmaster.images.service.external_load import ExternalLoadMonitor
    from trainmaster.images.service.intake import Intake, RequestChecks
    from trainmaster.images.service.launcher import ImageLauncher
    from trainmaster.images.service.submissions import SubmissionEntry
    from trainmaster.ports.runtime import Clock, Publisher
    from trainmaster.ports.store import Store


class ImageParts:
    """The parts of image jobs in one Lambda environment, each made when it is first needed.

    Args:
        settings: the deployment's settings of image jobs.
        application: the parts of the queue itself.
    """

    def __init__(self, settings: ImageSettings, application: Application) -> None:
        self.settings = settings
        self.application = application

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self.application.settings.queue

    @property
    def store(self) -> Store:
        """The queue's store."""
        return self.application.store

    @property
    def publisher(self) -> Publisher:
        """The wake queue."""
        return self.application.publisher

    @property
    def clock(self) -> Clock:
        """The clock of the application."""
        return self.application.clock

    @cached_property
    def known_endpoints(self) -> DynamoEndpoints:
        """The endpoints as last described, on DynamoDB."""
        from trainmaster.images.adapters.endpoint_rows import DynamoEndpoints

        return DynamoEndpoints(self.application.table, caps_of(self.settings.limits, self.clock.now))

    @cached_property
    def launcher(self) -> ImageLauncher | None:
        """The runs of image jobs; None in a function without access to both queues."""
        if not self.settings.region_queue_url or self.image_queue is None:
            return None
        from trainmaster.images.service.launcher import ImageLauncher

        settings, queues = self.settings, (self.region_queue, self.image_queue)
        return ImageLauncher(self.store, self.runs, *queues, self.clock, settings.limits, settings.resources)

    @cached_property
    def runs(self) -> Runs:
        """The regions of image jobs, on DynamoDB."""
        from trainmaster.images.adapters.runs import DynamoRuns

        return DynamoRuns(self.application.table, self.clock)

    @cached_property
    def image_queue(self) -> ImageIntake | None:
        """The queue of image requests, on SQS; None without its URL."""
        if not self.settings.image_queue_url:
            return None
        from trainmaster.images.adapters.sqs_requests import SqsImages

        urls = self.settings.image_queue_url, self.settings.image_dead_letter_queue_url
        return SqsImages(self.application.clients.of("sqs"), *urls)

    def check_model(self, url: str) -> None:
        """Raise `InvalidRequest` for a model's URL that no worker calls; names of hosts are not resolved."""
        from trainmaster.images.pixels.http.url_policy import check_model, literal_addresses

        s3 = self.application.clients.of("s3")
        hosts = self.settings.model_hosts
        check_model(url, s3_endpoint=s3.meta.endpoint_url, hosts=hosts, resolve=literal_addresses)

    @property
    def checks(self) -> RequestChecks:
        """The checks of requests that need no image."""
        from trainmaster.images.service.intake import RequestChecks

        return RequestChecks(self.check_model, self.settings.resources)

    @cached_property
    def refusals(self) -> Refusals:
        """The refused requests, on DynamoDB."""
        from trainmaster.images.adapters.refusals import DynamoRefusals

        return DynamoRefusals(self.application.table, self.clock)

    @cached_property
    def intake(self) -> Intake:
        """The dependencies of the intake; needs the layer with GDAL (ADR 17)."""
        from trainmaster.images.service.intake import Intake

        return Intake(
            store=self.store,
            headers=self.imaging.headers,
            endpoints=self.endpoints,
            known=self.known_endpoints,
            clock=self.clock,
            limits=self.settings.limits,
            reachable=self.imaging.check_model,
            access=self.application.access,
            account=self.settings.account,
            vouching=self.settings.api_role_id,
            senders=self.settings.senders,
            resources=self.settings.resources,
            submissions=self._submissions,
            audit_retention=timedelta(days=self.application.settings.audit_retention_days),
        )

    @property
    def _submissions(self) -> Submissions:
        from trainmaster.images.adapters.sqs_submissions import SqsSubmissions

        return SqsSubmissions(self.application.clients.of("sqs"), self.application.settings.wake_queue_url)

    @cached_property
    def entry(self) -> SubmissionEntry | None:
        """Stores the jobs of submissions; None in a function that starts no image jobs."""
        if self.launcher is None or self.image_queue is None:
            return None
        from trainmaster.images.service.submissions import SubmissionEntry

        application = self.application
        retention = timedelta(days=application.settings.audit_retention_days)
        return SubmissionEntry(self.store, application.access, self.clock, self.image_queue, self.refusals, retention)

    @cached_property
    def refresher(self) -> Refresher | None:
        """Describes endpoints at SageMaker; None in a function that starts no image jobs."""
        if self.launcher is None:
            return None
        from trainmaster.images.service.endpoints import Refresher

        return Refresher(self.known_endpoints, self.endpoints, self.clock, self.settings.limits, self._external_load())

    def _external_load(self) -> ExternalLoadMonitor | None:
        """Return the monitor of other callers; None if it is switched off, or if capacity is not checked."""
        if not (self.settings.limits.watch_others and self.settings.limits.throttling):
            return None
        from trainmaster.images.adapters.cloudwatch import CloudWatchConcurrency
        from trainmaster.images.service.external_load import ExternalLoadMonitor

        # One try: without a route to CloudWatch, a second timeout would cost the manager its time.
        clients = self.application.clients.under("cloudwatch", tries=1)
        return ExternalLoadMonitor(self.known_endpoints, CloudWatchConcurrency(clients), self.clock)

    @cached_property
    def endpoints(self) -> Endpoints:
        """SageMaker's endpoints; those of other accounts under the roles that reach them."""
        from trainmaster.images.adapters.sagemaker_endpoints import SageMakerEndpoints

        return SageMakerEndpoints(self.application.clients.under("sagemaker"))

    @cached_property
    def status_topic(self) -> Topic:
        """The SNS topic of status messages."""
        from trainmaster.images.adapters.sns_status import status_topic

        return status_topic(lambda: self.application.clients.of("sns"), self.settings.status_topic, lambda: self.store)

    @cached_property
    def meter(self) -> Meter:
        """Measures passes with image jobs."""
        return Meter()

    @cached_property
    def region_queue(self) -> RegionQueue:
        """The queue of regions to process, on SQS."""
        from trainmaster.images.adapters.sqs_regions import SqsRegions

        return SqsRegions(self.application.clients.of("sqs"), self.settings.region_queue_url, self.clock.sleep)

    @property
    def region_senders(self) -> tuple[str, ...]:
        """IDs of the roles whose messages workers obey."""
        return self.settings.region_senders

    @cached_property
    def workers(self) -> WorkerQueue:
        """The ports of the workers that process regions."""
        from trainmaster.images.adapters.sqs_progress import SqsProgress
        from trainmaster.images.pixels.work.task import Queue as WorkerQueue

        sqs, wake_queue = self.application.clients.of("sqs"), self.application.settings.wake_queue_url
        return WorkerQueue(
            runs=self.runs,
            regions=self.region_queue,
            endpoints=self.known_endpoints,
            tell=SqsProgress(sqs, wake_queue, self.clock).tell,
            clock=self.clock,
            attempts=self.settings.limits.attempts,
        )

    @cached_property
    def imaging(self) -> Imaging:
        """Reads images, invokes models, writes results; needs the layer with GDAL (ADR 17)."""
        from trainmaster.images.pixels.wiring import Imaging

        settings = self.settings
        return Imaging(
            self.application.clients.session,
            self.clock,
            self.queue,
            hosts=settings.model_hosts,
            sensor_models=settings.sensor_models,
            elevation=settings.elevation,
        )
