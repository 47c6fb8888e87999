"""Builds image readers, model clients and result writers from one boto3 session."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import httpx
from botocore.config import Config

from trainmaster.adapters.sts import Roles
from trainmaster.images.domain.urls import listed_addresses
from trainmaster.images.pixels.features.results import ResultNames, Results
from trainmaster.images.pixels.features.streams import FeatureStream
from trainmaster.images.pixels.http.url_policy import check_model, image_location, is_loopback
from trainmaster.images.pixels.reading.access import Access
from trainmaster.images.pixels.reading.elevation import LocalSource, RasterElevation
from trainmaster.images.pixels.reading.encoding import CONTENT_TYPES
from trainmaster.images.pixels.reading.headers import RasterHeaders
from trainmaster.images.pixels.reading.sensors import Elevation, Sensors, load, load_factories
from trainmaster.images.pixels.reading.windows import Image
from trainmaster.images.pixels.role_clients import RoleClients
from trainmaster.images.pixels.work.models import (
    MAX_CONNECTIONS,
    HttpModel,
    Model,
    RetryingModel,
    SageMakerModel,
    http_client,
    runtime_config,
)
from trainmaster.images.pixels.work.task import Task
from trainmaster.images.service.plugins import S3, is_raster
from trainmaster.ports.runtime import Clock

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sts import STSClient


class Imaging:
    """The image components of one Lambda environment, each built on first use.

    URLs may lead to loopback addresses if boto3's S3 endpoint is one: a local stack.

    Args:
        session: creates the clients.
        clock: the time.
        queue: the queue's name, the external ID under which roles are assumed.
        rng: spreads retries.
        hosts: hosts with ports whose models may be called by URL.
        sensor_models: plug-ins with sensor models (`ImageSettings.sensor_models`).
        elevation: heights of the ground (`ImageSettings.elevation`).
    """

    def __init__(  # noqa: PLR0913 -- settings of a deployment
        self,
        session: boto3.Session,
        clock: Clock,
        queue: str,
        rng: random.Random | None = None,
        *,
        hosts: Collection[str] = frozenset(),
        sensor_models: Sequence[str] = (),
        elevation: str = "",
    ) -> None:
        self._sensor_models, self._elevation = sensor_models, elevation
        self._session = session
        self._hosts = hosts
        self._clock = clock
        self._queue = queue
        self._rng = rng or random.Random()  # noqa: S311 - spreads tries, guards nothing

    @cached_property
    def headers(self) -> RasterHeaders:
        """Reads images' headers."""
        return RasterHeaders(self._access, loopback=self._loopback)

    def image(self, task: Task) -> Image:
        """Return the job's image; see `worker.WorkerFactory`."""
        place = image_location(task.request.image_url, loopback=self._loopback)
        return Image(self._access, place, task.request.image_read_role, task.submitter)

    def check_model(self, url: str) -> None:
        """Raise `InvalidRequest` for a model's URL that may not be called; see `url_policy.check_model`."""
        check_model(url, s3_endpoint=self._s3.meta.endpoint_url, hosts=self._hosts)

    def model(self, task: Task, wait: Callable[[float], bool]) -> Model:
        """Return the job's model; see `worker.WorkerFactory`."""
        return RetryingModel(self._plain_model(task), wait=wait, spread=self._rng.random)

    def results(self, task: Task) -> Results:
        """Return the store of the job's results; see `worker.WorkerFactory`."""
        request = task.request
        image = image_location(request.image_url, loopback=True).name
        names = ResultNames(request.job_id, image, request.result_key)
        s3, kinesis = _clients_of(self._s3_clients, task), _clients_of(self._kinesis_clients, task)
        streams = [FeatureStream(kinesis, request.job_id, each, self._clock.sleep) for each in request.streams]
        return Results(s3, names, request.buckets, streams)

    def _plain_model(self, task: Task) -> Model:
        request = task.request
        content_type = str(request.parameters.get("ContentType") or CONTENT_TYPES[request.tile_format])
        if request.processor.is_http:
            self.check_model(request.processor.name)
            return HttpModel(self._models_http, request.processor.name, content_type=content_type)
        return SageMakerModel(
            self._runtimes.client(request.processor.assumed_role, task.submitter),
            request.processor.name,
            request.parameters,
            variant=task.variant,
            content_type=content_type,
        )

    def close(self) -> None:
        """Close all connections; the object cannot be used afterwards."""
        clients = (self._s3_clients, self._kinesis_clients, self._runtimes, self._sts)
        for each in (*clients, self._http, self._models_http):
            each.close()

    @cached_property
    def _runtimes(self) -> RoleClients:
        return RoleClients(self._roles, "sagemaker-runtime", runtime_config())

    @cached_property
    def _access(self) -> Access:
        return Access(self._s3_clients, http=self._http, sensors=self._sensors)

    @cached_property
    def _sensors(self) -> Sensors:
        """The deployment's plug-ins. Raises `Unavailable` if one cannot be loaded: messages come again."""
        return Sensors(load_factories(self._sensor_models), self._elevation_of(self._elevation))

    def _elevation_of(self, setting: str) -> Elevation | None:
        if not setting:
            return None
        if not is_raster(setting):
            made: Elevation = load(setting)()
            return made
        if not setting.startswith(S3):
            return RasterElevation(lambda: LocalSource(setting), setting)
        place = image_location(setting, loopback=True)
        # An Access of its own: it must not need the elevation that it reads.
        return RasterElevation(lambda: Access(self._s3_clients, http=self._http).source(place, None), setting)

    @cached_property
    def _roles(self) -> Roles:
        return Roles(self._session, self._sts, self._clock, self._queue)

    @cached_property
    def _sts(self) -> STSClient:
        patience = Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=2, read_timeout=10)
        return self._session.client("sts", config=patience)

    @property
    def _s3(self) -> S3Client:
        client: S3Client = self._s3_clients.client(None)
        return client

    @cached_property
    def _s3_clients(self) -> RoleClients:
        patience = Config(
            retries={"mode": "standard", "total_max_attempts": 5},
            max_pool_connections=MAX_CONNECTIONS,
            connect_timeout=5,
            read_timeout=60,
        )
        return RoleClients(self._roles, "s3", patience)

    @cached_property
    def _kinesis_clients(self) -> RoleClients:
        # All tries together are shorter than the silence after which another worker takes the merge over.
        patience = Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=5, read_timeout=15)
        return RoleClients(self._roles, "kinesis", patience)

    @cached_property
    def _http(self) -> httpx.Client:
        return http_client(loopback=self._loopback)

    @cached_property
    def _models_http(self) -> httpx.Client:
        return http_client(loopback=self._loopback, listed=listed_addresses(self._hosts))

    @property
    def _loopback(self) -> bool:
        return is_loopback(urlsplit(self._s3.meta.endpoint_url).hostname)


def _clients_of(clients: RoleClients, task: Task) -> Callable[[str | None], Any]:
    """Return a function that returns the client of a role for a job."""
    return lambda role: clients.client(role, task.submitter)
