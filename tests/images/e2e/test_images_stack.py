"""Image jobs on a deployed stack of their own: from a message to results in S3, by real workers at simulated endpoints.

The model server stands in for the models' containers; it finds bright squares, and counts who asks at once.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter, defaultdict

import boto3
import pytest
from botocore.exceptions import ClientError
from rasterio.warp import transform

from deployed_stack import Deployed, eventually
from model_server import model_server
from spots import NORTH, STEP, UTM, WEST, blobs, boxes_of, collection, geotiff, picture, scattered, squares
from trainmaster import ApiClient
from trainmaster.client.api.errors import NotFound
from trainmaster.images.client.requests import submit_image
from trainmaster.local.stack import LocalStack
from trainmaster.local.stack.address import ACCOUNT, REGION, SECRET

pytestmark = pytest.mark.usefixtures("images", "sent_first")

IMAGES, RESULTS, THEIRS = "images", "results", "their-images"
"""Buckets; the last is of another account, and nothing to ours."""
READER, INVOKER = "arn:aws:iam::222222222222:role/reader", "arn:aws:iam::333333333333:role/invoker"
"""Roles of other accounts: of the one with images, and of the one with an endpoint."""
SMALL, WIDE, LARGE = (200, 200), (400, 200), (400, 380)
"""Of one, two and four regions, each of four tiles."""
OBJECTS = {size: scattered(*size, size[0] * size[1] // 4000) for size in (SMALL, WIDE, LARGE)}
"""Upper left corners of each image's objects."""
WORKERS = 2
"""Requests that a region makes at once."""
PARAMETERS = {
    "ImageBucketArns": f"arn:aws:s3:::{IMAGES}",
    "ImageSenders": "*",
    "ImageOutputBucketArns": f"arn:aws:s3:::{RESULTS}",
    "ImageRoleArns": f"{READER},{INVOKER}",
    "RegionSize": "(256,256)",
    "TileWorkersPerInstance": str(WORKERS),
    # More than would do for MOST requests, so that the queue has to keep to it; each is a process that has to start.
    "RegionConcurrency": "3",
}
LEAN, TAGGED, SPLIT = "lean", "tagged", "split"
"""Endpoints: serverless, of one instance with a tag, of two variants."""
MOST = 4
"""Requests that the variants of the first two take at once."""
PATIENCE = 50.0
"""Maximum seconds for which a request is held: after a minute the caller has given up."""
ANSWER_TIME = 0.1
"""Seconds; so that requests meet at the model."""


class Model:
    """Finds the squares of tiles, and keeps those waiting that are told to.

    Attributes:
        paths: of each job, the endpoints and variants at which its tiles were shown.
        inside: of each job, how many wait for their answer.
        most_shared: the most requests at once of which not all were one job's, by path.
    """

    def __init__(self):
        self.paths = defaultdict(set)
        self.inside = Counter()
        self.most_shared = Counter()
        self._by_path = defaultdict(Counter)
        self._held = {}
        self._lock = threading.Lock()

    def hold(self, *jobs):
        """Keep the jobs' requests waiting."""
        self._held |= {job: threading.Event() for job in jobs}

    def release(self, *jobs):
        """Let them go; without jobs all."""
        for job in jobs or list(self._held):
            self._held[job].set()

    def __call__(self, path, headers, body):
        # A model behind a URL is sent no such header: the test names it after its job.
        job = headers.get("X-Amzn-SageMaker-Custom-Attributes", path.strip("/"))
        with self._lock:
            here = self._by_path[path]
            here[job] += 1
            self.inside[job] += 1
            self.paths[job].add(path)
            if len(+here) > 1:
                self.most_shared[path] = max(self.most_shared[path], here.total())
        if job in self._held:
            self._held[job].wait(PATIENCE)
        time.sleep(ANSWER_TIME)
        answer = json.dumps(collection(blobs(body))).encode()
        with self._lock:
            here[job] -= 1
            self.inside[job] -= 1
        return "application/json", answer


@pytest.fixture(scope="module")
def model():
    return Model()


@pytest.fixture(scope="module")
def server(model):
    with model_server(model) as server:
        yield server


@pytest.fixture(scope="module")
def deployed(server, model):
    """Instead of the stack that others share: this one has image jobs."""
    session = boto3.session.Session(aws_access_key_id=ACCOUNT, aws_secret_access_key=SECRET, region_name=REGION)
    with (
        LocalStack(label="images", kinds={"images": PARAMETERS}, simulator=("--model-server", server.url)) as address,
        ApiClient(address.api_url, session=session) as api,
    ):
        stack = Deployed(address, api)
        sagemaker = stack.aws("sagemaker")
        endpoint(sagemaker, LEAN, {"VariantName": "only", "ServerlessConfig": serverless(MOST)})
        endpoint(sagemaker, TAGGED, {"VariantName": "only", **on_instances(1)}, tags={"osml:instance-concurrency": "4"})
        heavy, light = (
            {"VariantName": name, **on_instances(2, weight)} for name, weight in (("blue", 0.7), ("green", 0.3))
        )
        endpoint(sagemaker, SPLIT, heavy, light)
        # Of the same name as one of ours.
        endpoint(under(stack, INVOKER, "sagemaker"), LEAN, {"VariantName": "theirs", **on_instances(1)})
        yield stack
        model.release()


def under(deployed, role, service):
    """A client under a role of another account."""
    given = deployed.aws("sts").assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    session = boto3.session.Session(
        given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"], region_name=REGION
    )
    return session.client(service, endpoint_url=deployed.aws(service).meta.endpoint_url)


def serverless(most):
    return {"MemorySizeInMB": 2048, "MaxConcurrency": most}


def on_instances(count, weight=1):
    return {"InstanceType": "ml.m5.xlarge", "InitialInstanceCount": count, "InitialVariantWeight": weight}


def endpoint(sagemaker, name, *variants, tags=None):
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=f"arn:aws:iam::{ACCOUNT}:role/model", PrimaryContainer={})
    sagemaker.create_endpoint_config(
        EndpointConfigName=name, ProductionVariants=[{"ModelName": name, **variant} for variant in variants]
    )
    listed = [{"Key": key, "Value": value} for key, value in (tags or {}).items()]
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name, Tags=listed)


@pytest.fixture(scope="module")
def images(deployed):
    """The images, in S3."""
    s3 = deployed.aws("s3")
    for bucket in (IMAGES, RESULTS):
        s3.create_bucket(Bucket=bucket)
    for size, objects in OBJECTS.items():
        s3.put_object(Bucket=IMAGES, Key=key_of(size), Body=geotiff(picture(*size, objects)))
    theirs = under(deployed, READER, "s3")
    theirs.create_bucket(Bucket=THEIRS)
    theirs.put_object(Bucket=THEIRS, Key=key_of(WIDE), Body=geotiff(picture(*WIDE, OBJECTS[WIDE])))


def key_of(size):
    return f"{size[0]}x{size[1]}.tif"


def a_request(job, endpoint_name, size, **members):
    return {
        "jobId": job,
        "imageUrls": [f"s3://{IMAGES}/{key_of(size)}"],
        "imageProcessor": {"name": endpoint_name, "type": "SM_ENDPOINT"},
        "imageProcessorParameters": {"CustomAttributes": job},
        "imageProcessorTileSize": 128,
        "imageProcessorTileOverlap": 24,
        "imageProcessorTileFormat": "PNG",
        "outputs": [{"type": "S3", "bucket": RESULTS, "prefix": "found"}],
    } | members


@pytest.fixture(scope="module")
def send(deployed):
    """Puts requests on the image queue in one batch, as ModelRunner's users do."""

    def send(*requests):
        entries = [{"Id": str(number), "MessageBody": json.dumps(each)} for number, each in enumerate(requests)]
        sent = deployed.aws("sqs").send_message_batch(
            QueueUrl=deployed.address.outputs["ImageQueueUrl"], Entries=entries
        )
        assert len(sent["Successful"]) == len(requests)

    return send


@pytest.fixture(scope="module")
def sent_first(images, server, send):
    """Jobs with models and images elsewhere, which nothing else waits for; the functions start meanwhile."""
    url = {"name": f"{server.url}/by-url", "type": "HTTP_ENDPOINT"}
    elsewhere = {"name": LEAN, "type": "SM_ENDPOINT", "assumedRole": INVOKER}
    image = [f"s3://{THEIRS}/{key_of(WIDE)}"]
    send(
        a_request("by-url", "", WIDE, imageProcessor=url, imageUrls=image, imageReadRole=READER),
        a_request("by-role", "", WIDE, imageProcessor=elsewhere),
    )


@pytest.fixture
def submit(trainmaster, tmp_path):
    """Submits a request with the command line."""

    def submit(request):
        file = tmp_path / f"{request['jobId']}.json"
        file.write_text(json.dumps(request))
        done = trainmaster("submit", file)
        assert done.returncode == 0, done.stderr

    return submit


def find(deployed, name):
    """The job; None where there is none."""
    try:
        return deployed.api.job(name)
    except NotFound:
        return None


def entered(deployed, name):
    """The job, once its image has been looked at."""
    return eventually(lambda: find(deployed, name))


def result_of(deployed, job, size):
    body = deployed.aws("s3").get_object(Bucket=RESULTS, Key=f"found/{job}/{key_of(size)}.geojson")["Body"]
    return json.loads(body.read())


def check_places(result):
    """Longitude and latitude lead back to the pixels, to a hundredth of one."""
    for feature in result["features"]:
        left, top, right, bottom = feature["properties"]["imageBBox"]
        ring = feature["geometry"]["coordinates"][0]
        xs, ys = transform("EPSG:4326", UTM, [x for x, _ in ring], [y for _, y in ring])
        columns, rows = [(x - WEST) / STEP for x in xs], [(NORTH - y) / STEP for y in ys]
        assert (min(columns), max(columns)) == pytest.approx((left, right), abs=0.01)
        assert (min(rows), max(rows)) == pytest.approx((top, bottom), abs=0.01)


def test_a_job_waits_until_a_serverless_endpoint_has_room_and_every_object_is_found_once(
    deployed, server, model, submit, trainmaster
):
    model.hold("harbour-1")
    submit(a_request("harbour-1", LEAN, WIDE))
    eventually(lambda: model.inside["harbour-1"] == MOST)
    submit(a_request("harbour-2", LEAN, WIDE))
    waiting = eventually(lambda: (job := entered(deployed, "harbour-2"))["reason"] and job)
    assert (waiting["jobState"], waiting["details"]["load"], waiting["details"]["variant"]) == ("pending", MOST, "only")
    assert f"endpoint/{LEAN}/only" in trainmaster("why", "harbour-2").stdout

    model.release("harbour-1")

    waited = trainmaster("wait", "harbour-1", "harbour-2", "--interval", "0.5")
    assert waited.returncode == 0, waited.stderr
    for job in ("harbour-1", "harbour-2"):
        done = deployed.api.job(job)
        assert done["details"]["regions"] == {"total": 2, "done": 2, "failed": 0}
        assert done["details"]["loadLeft"] == 0
        result = result_of(deployed, job, WIDE)
        assert boxes_of(result) == squares(OBJECTS[WIDE])
        check_places(result)
    assert server.most[f"/{LEAN}/only"] == MOST, "never more than the endpoint takes"


def test_an_image_that_is_too_large_for_its_endpoint_has_it_to_itself(deployed, server, model, trainmaster):
    """The guide's single image exception, at an endpoint whose tag tells what its instance takes."""
    path, pool = f"/{TAGGED}/only", f"endpoint/{TAGGED}/only"
    model.hold("before-it", "too-large")
    assert submit_image(deployed.api, a_request("before-it", TAGGED, SMALL))["state"] == "received"
    eventually(lambda: model.inside["before-it"] == WORKERS)
    submit_image(deployed.api, a_request("too-large", TAGGED, LARGE))
    assert eventually(lambda: entered(deployed, "too-large")["reason"])
    pools = {each["name"]: each for each in json.loads(trainmaster("pools", "--json").stdout)["pools"]}
    assert (pools[pool]["cap"], pools[pool]["used"]) == (MOST, WORKERS)

    model.release("before-it")
    eventually(lambda: model.inside["too-large"] == MOST)
    shown = eventually(lambda: (job := deployed.api.job("too-large"))["jobState"] == "running" and job)
    assert shown["details"]["regions"] == {"total": 4, "done": 0, "failed": 0}, "it runs as soon as a region does"
    assert "its regions are being worked on" in trainmaster("show", "too-large").stdout
    submit_image(deployed.api, a_request("after-it", TAGGED, SMALL))
    assert eventually(lambda: entered(deployed, "after-it")["reason"])
    model.release("too-large")

    for job, size in (("before-it", SMALL), ("too-large", LARGE), ("after-it", SMALL)):
        deployed.state(job, "completed")
        assert boxes_of(result_of(deployed, job, size)) == squares(OBJECTS[size])
    assert server.most[path] == MOST, "alone it has all that the endpoint takes, and no more"
    assert model.most_shared[path] <= MOST, "and no other job meanwhile"


def drawn(job):
    """The variant that a job's name draws of 70 and 30 percent."""
    share = int(hashlib.sha256(job.encode()).hexdigest()[:8], 16) / 2**32
    return "blue" if share < 0.7 else "green"


def test_jobs_keep_the_variant_chosen_for_them_and_a_bad_request_among_them_harms_none(deployed, model, send):
    # Their draws are 53, 81, 16, 74, 58 and 40 percent: other shares of blue than 58 to 74 would choose otherwise.
    jobs = [f"split-{number}" for number in (0, 5, 6, 8, 12, 3)]
    bad = a_request("no-such-image", SPLIT, SMALL, imageUrls=[f"s3://{IMAGES}/none.tif"])
    send(*(a_request(job, SPLIT, SMALL) for job in jobs[:3]), bad, *(a_request(job, SPLIT, SMALL) for job in jobs[3:]))

    done = {job: entered(deployed, job) for job in jobs}
    chosen = {job: view["details"]["variant"] for job, view in done.items()}
    assert chosen == {job: drawn(job) for job in jobs}
    for job in jobs:
        deployed.state(job, "completed")
        assert boxes_of(result_of(deployed, job, SMALL)) == squares(OBJECTS[SMALL])
        assert model.paths[job] == {f"/{SPLIT}/{chosen[job]}"}

    sqs, url = deployed.aws("sqs"), deployed.address.outputs["ImageDeadLetterQueueUrl"]
    (message,) = eventually(lambda: sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"]).get("Messages"))
    assert message["Body"] == json.dumps(bad), "as it came"
    told = {name: each["StringValue"] for name, each in message["MessageAttributes"].items()}
    assert told["Field"].startswith("imageUrls")
    assert "none.tif" in told["Reason"]
    assert find(deployed, "no-such-image") is None

    deployed.aws("s3").put_object(Bucket=IMAGES, Key="none.tif", Body=geotiff(picture(*SMALL, OBJECTS[SMALL])))
    send(json.loads(message["Body"]))
    entered(deployed, "no-such-image")
    deployed.state("no-such-image", "completed")


def test_models_behind_urls_are_asked_and_images_and_endpoints_of_other_accounts_reached_under_their_roles(
    deployed, model
):
    with pytest.raises(ClientError, match="Forbidden"):
        deployed.aws("s3").head_object(Bucket=THEIRS, Key=key_of(WIDE))
    runtime = deployed.aws("sagemaker-runtime")
    with pytest.raises(ClientError, match="not found"):
        runtime.invoke_endpoint(EndpointName=LEAN, TargetVariant="theirs", Body=b"x")

    for job in ("by-url", "by-role"):
        entered(deployed, job)
        deployed.state(job, "completed")
        assert boxes_of(result_of(deployed, job, WIDE)) == squares(OBJECTS[WIDE])
    assert model.paths["by-url"] == {"/by-url"}
    assert deployed.api.job("by-url")["details"].get("variant") is None
    assert deployed.api.job("by-role")["details"]["variant"] == "theirs"
    assert model.paths["by-role"] == {f"/{LEAN}/theirs"}, "not at the endpoint of ours that is called the same"
