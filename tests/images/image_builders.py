"""Builders of image jobs and endpoints' pools for tests: what an image job needs beyond `builders`."""

from __future__ import annotations

from typing import Any

import builders as b
from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.images.domain.endpoint import Endpoint, Variant, pool_name
from trainmaster.images.domain.tiling import Cut, Window
from trainmaster.images.domain.work import ImageWork, RunProgress

CUT = Cut(tile=(1024, 1024), overlap=(50, 50))


def an_image_work(load: int = 8, *, endpoint: str = "ships", variant: str = "blue", **fields: Any) -> ImageWork:
    """Work of so many requests at once, in regions of four workers each."""
    regions = -(-load // 4)
    fields = {"regions": regions, "tiles": 81 * regions, "workers": 4, "left": load, **fields}
    part = Window(0, 0, 10_240, 10_240 * regions)
    return ImageWork(endpoint=endpoint, variant=variant, part=part, cut=CUT, load=load, **fields)


def an_image_job(
    name: str = "image1", load: int = 8, *, endpoint: str = "ships", variant: str = "blue", **fields: Any
) -> Job:
    """A waiting image job that makes so many requests at once."""
    work = fields.pop("work", None) or an_image_work(load, endpoint=endpoint, variant=variant)
    return b.a_job(name, demand=work.demand(), work=work, **fields)


def a_started_image(name: str = "image1", load: int = 8, *, units: int | None = None, **fields: Any) -> Job:
    """An image job whose start is decided; it holds `units`, or all that it asks for."""
    now = fields.pop("now", b.NOW)
    job = an_image_job(name, load, **fields)
    pool, count = next(iter(job.demand.alternatives[0].items()))
    return lifecycle.start(job, {pool: count if units is None else units}, (), now)


def a_running_image(name: str = "image1", load: int = 8, **fields: Any) -> Job:
    """An image job whose regions are being worked on."""
    now = fields.get("now", b.NOW)
    job = a_started_image(name, load, **fields)
    return must(lifecycle.observe(job, b.an_observation(job, secondary="Training", started_at=now), now))


def a_report(job: Job, *, status: Status = Status.IN_PROGRESS, **progress: int) -> Observation:
    """Observation of the run's records."""
    secondary = "Training" if status is Status.IN_PROGRESS else ""
    return b.an_observation(job, status=status, secondary=secondary, progress=RunProgress(**progress))


def an_endpoint(key: str = "ships", *, takes: int = 8, variant: str = "blue", **fields: Any) -> Endpoint:
    """A described endpoint with one serverless variant that takes so many requests at once."""
    fields.setdefault("described_at", b.NOW)
    return Endpoint(key=key, variants=(Variant(name=variant, max_concurrency=takes),), **fields)


def an_endpoint_pool(cap: int = 8, *, endpoint: str = "ships", variant: str = "blue") -> Pool:
    """The pool of a variant, as snapshots bring it along."""
    return Pool(pool_name(endpoint, variant), cap, kind=Kind.SERVICE)


def must(job: Job | None) -> Job:
    """The job that a report has changed."""
    assert job is not None, "the report changed nothing"
    return job
