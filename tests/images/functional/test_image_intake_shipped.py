"""Intake as it is shipped: the handler over DynamoDB, SQS, SageMaker and S3 of moto, with GDAL reading real images."""

from __future__ import annotations

import json
from dataclasses import replace

import httpx
import numpy as np
import pytest
import rasterio
from moto.server import ThreadedMotoServer
from rasterio.transform import from_origin

from api_world import ALICE, CONTEXT, read, rest_event
from aws_clients import aws_session
from image_world import Context, a_record, an_image_request
from trainmaster.bootstrap import Application, Settings
from trainmaster.domain.errors import Unavailable
from trainmaster.handlers.api.app import build_app
from trainmaster.images.handlers.intake import consume, metrics
from trainmaster.images.kind import image_parts
from trainmaster.images.service.variants import settle_variants
from world import make_table

TABLE = "intake-queue"
POOL = "endpoint/ships/green"


def a_tiff(width, height):
    """A GeoTIFF with nothing in it."""
    pixels = np.zeros((1, height, width), dtype="uint8")
    place = {"crs": "EPSG:4326", "transform": from_origin(7, 54, 0.0001, 0.0001)}
    with rasterio.MemoryFile() as memory:
        with memory.open(
            driver="GTiff", width=width, height=height, count=1, dtype="uint8", compress="deflate", **place
        ) as image:
            image.write(pixels)
        return bytes(memory.getbuffer())


@pytest.fixture(scope="module")
def address():
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def session(address, monkeypatch):
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    yield aws_session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    httpx.post(f"{address}/moto-api/reset")


def make_endpoint(sagemaker):
    """An endpoint of two variants with the guide's tag."""
    sagemaker.create_model(ModelName="m", ExecutionRoleArn="arn:aws:iam::123456789012:role/model")
    usual = {"ModelName": "m", "InitialInstanceCount": 2, "InstanceType": "ml.m5.xlarge"}
    sagemaker.create_endpoint_config(
        EndpointConfigName="c",
        ProductionVariants=[
            {"VariantName": "blue", "InitialVariantWeight": 0.7, **usual},
            {"VariantName": "green", "InitialVariantWeight": 0.3, **usual},
        ],
    )
    tags = [{"Key": "osml:instance-concurrency", "Value": "5"}]
    sagemaker.create_endpoint(EndpointName="ships", EndpointConfigName="c", Tags=tags)


@pytest.fixture
def application(session):
    make_table(session.client("dynamodb"), TABLE)
    sqs, s3 = session.client("sqs"), session.client("s3")
    queues = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("images", "images-dlq", "regions")}
    fifo = sqs.create_queue(QueueName="wake.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    s3.create_bucket(Bucket="images")
    s3.put_object(Bucket="images", Key="small.tif", Body=a_tiff(1500, 900))
    s3.put_object(Bucket="images", Key="my image.tif", Body=a_tiff(100, 100))
    s3.put_object(Bucket="images", Key="text.tif", Body=b"this is no image")
    make_endpoint(session.client("sagemaker"))
    settings = Settings(
        queue="sagemaker-queue",
        table=TABLE,
        wake_queue_url=fifo,
        job_kinds={
            "image": {
                "IMAGE_QUEUE_URL": queues["images"],
                "IMAGE_DEAD_LETTER_QUEUE_URL": queues["images-dlq"],
                "REGION_QUEUE_URL": queues["regions"],
                "REGION_SIZE": "(1024, 1024)",
            }
        },
    )
    made = Application(settings, session)
    yield made
    image_parts(made).imaging.close()


def messages(session, url):
    """Messages of a queue, each with the texts of its attributes."""
    got = session.client("sqs").receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], WaitTimeSeconds=0
    )
    return [
        (each["Body"], {name: told["StringValue"] for name, told in each.get("MessageAttributes", {}).items()})
        for each in got.get("Messages", [])
    ]


def deliver(application, *bodies):
    try:
        records = [a_record(number, body) for number, body in enumerate(bodies)]
        return consume(image_parts(application), {"Records": records}, Context())
    finally:
        metrics.clear_metrics()


def hear(application, session):
    """Let the manager hear what the intake has sent; its submissions."""
    bodies = [json.loads(body) for body, _ in messages(session, application.settings.wake_queue_url)]
    submissions = [body for body in bodies if "submission" in body]
    for body in submissions:
        assert application.kinds["image"].observe(body) is None
    return submissions


def test_a_batch_is_taken_in_by_all_that_is_shipped(application, session):
    interest = "POLYGON ((7.01 53.99, 7.06 53.99, 7.06 53.96, 7.01 53.96, 7.01 53.99))"
    bodies = [
        an_image_request("whole", imageProcessorParameters={"TargetVariant": "green"}),
        an_image_request("part", regionOfInterest=interest, imageProcessorTileSize=256),
        an_image_request("blank", imageUrls=["s3://images/my image.tif"]),
        an_image_request("elsewhere", regionOfInterest="POLYGON ((1 1, 2 1, 2 2, 1 2, 1 1))"),
        an_image_request("no-image", imageUrls=["s3://images/text.tif"]),
        an_image_request("missing", imageUrls=["s3://images/missing.tif"]),
        an_image_request("no-endpoint", imageProcessor={"name": "planes"}),
        "not JSON",
    ]
    assert deliver(application, *bodies) == {"batchItemFailures": []}
    store = application.store
    assert store.find("whole") is None
    submissions = hear(application, session)
    assert {each["submission"]["name"] for each in submissions} == {"whole", "part", "blank"}
    whole, part = store.find("whole"), store.find("part")
    assert store.find("blank").work.tiles == 1
    assert whole.demand.alternatives == ({POOL: whole.work.load},)
    assert (whole.work.regions, whole.work.variant) == (2, "green")
    assert (part.work.part.column, part.work.part.row) == (100, 100)
    assert store.request_of("part")["regionOfInterest"] == interest
    letters = dict(messages(session, image_parts(application).settings.image_dead_letter_queue_url))
    aside = {json.loads(body)["jobId"] if body != "not JSON" else body: told for body, told in letters.items()}
    assert {name: told.get("Field") for name, told in aside.items()} == {
        "elsewhere": "regionOfInterest",
        "no-image": "imageUrls",
        "missing": "imageUrls",
        "no-endpoint": "imageProcessor.name",
        "not JSON": None,
    }
    assert all(told["Reason"] for told in aside.values())
    # Two instances of 5 requests each, of which the image takes its load.
    pool = store.read_snapshot().pools[POOL]
    assert pool.cap == 10
    assert image_parts(application).known_endpoints.known(["ships"])["ships"].instance_concurrency == 5


def test_the_shipped_intake_accepts_requests_of_the_shipped_api(application, session):
    app = build_app(application)
    reply = read(app.resolve(rest_event("POST", "/image-jobs", an_image_request("by-api")), CONTEXT))
    assert (reply.status, reply.body["state"]) == (202, "received")
    ((body, told),) = messages(session, image_parts(application).settings.image_queue_url)
    assert told == {"Caller": ALICE}
    assert deliver(application, body) == {"batchItemFailures": []}
    hear(application, session)
    shown = read(app.resolve(rest_event("GET", "/jobs/by-api"), CONTEXT)).body
    assert (shown["kind"], shown["details"]["regions"]["total"]) == ("image", 2)


class Away:
    """SageMaker, as long as it does not answer."""

    def describe(self, key, *, role=None):
        raise Unavailable("SageMaker does not answer")


def test_w18_a_request_for_an_endpoint_that_cannot_be_described_is_moved_to_its_variants_lane_later(
    application, session
):
    parts = image_parts(application)
    parts.__dict__["intake"] = replace(parts.intake, endpoints=Away())
    assert deliver(application, an_image_request("early")) == {"batchItemFailures": []}
    hear(application, session)
    store = application.store
    assert store.read_snapshot().pools["endpoint/ships"].cap == 2
    assert parts.refresher.refresh(store.read_snapshot().waiting) == ()
    assert settle_variants(store, parts.known_endpoints, parts.clock, store.read_snapshot().waiting) == ("early",)
    (job,) = store.read_snapshot().waiting
    assert job.demand.alternatives == ({f"endpoint/ships/{job.work.variant}": job.work.load},)
    assert job.work.variant in {"blue", "green"}
    assert {name: pool.cap for name, pool in store.read_snapshot().pools.items() if name.startswith("endpoint/")} == {
        "endpoint/ships/blue": 10,
        POOL: 10,
    }
