"""A stage for the real SageMaker SDKs: the scripted world over HTTP, and moto for S3, STS, IAM and CloudWatch Logs.

It is used by tests/e2e/sdk2 and tests/e2e/sdk3, which run in environments of their own, without Trainmaster's other
test tools.
"""

from __future__ import annotations

import _thread
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import boto3
from client_world import PATIENCE_SECONDS, REGION, World, served
from moto.server import ThreadedMotoServer

BUCKET = "trainmaster-sdk"
GROUP = "/aws/sagemaker/TrainingJobs"


def environment(world_url: str, moto_url: str, directory: Path) -> dict[str, str]:
    """Environment that leads the SDK to the stage and nowhere else: without opt-out, it reports each call to AWS."""
    config = directory / "sagemaker.yaml"
    settings = {"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}}}
    config.write_text(json.dumps(settings))
    return {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": str(directory / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(directory / "none"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": moto_url,
        "AWS_ENDPOINT_URL_SAGEMAKER": world_url,
        "SAGEMAKER_USER_CONFIG_OVERRIDE": str(config),
        "SAGEMAKER_ADMIN_CONFIG_OVERRIDE": str(config),
        # SDK 3 asks IAM to simulate the role's policies, which moto cannot; the world denies it, as many accounts do.
        "AWS_ENDPOINT_URL_IAM": world_url,
        "TRAINMASTER_API_URL": f"{world_url}/prod",
    }


@contextmanager
def moto_served() -> Iterator[str]:
    """Moto's server, on a free port of the loopback."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


class Stage:
    """A world that is served, with a writer of container logs; to be used under `environment`."""

    def __init__(self, world: World) -> None:
        self.world = world
        session = boto3.session.Session()
        session.client("s3").create_bucket(Bucket=BUCKET)
        self._logs: Any = session.client("logs")
        try:
            self._logs.create_log_group(logGroupName=GROUP)
        except self._logs.exceptions.ResourceAlreadyExistsException:
            return

    def write(self, attempt: str, *lines: str) -> None:
        """Lines that the attempt's first host prints."""
        stream = f"{attempt}/algo-1-1700000000"
        if not self._logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=stream)["logStreams"]:
            self._logs.create_log_stream(logGroupName=GROUP, logStreamName=stream)
        now = int(time.time() * 1000)
        events = [{"timestamp": now + number, "message": line} for number, line in enumerate(lines)]
        self._logs.put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=events)

    def measure(self, name: str, minutes: int, loss: float) -> None:
        """Run an attempt that began so many minutes ago, printed a loss a minute later, and was preempted."""
        attempt, start = self.world.start(name), time.time() - 60 * minutes
        self.world.trainings[attempt]["TrainingStartTime"] = start
        times = {"createdAt": moment(start - 1), "startedAt": moment(start)}
        dimensions = [{"Name": "TrainingJobName", "Value": attempt}]
        data = {"MetricName": "loss", "Dimensions": dimensions, "Value": loss, "Timestamp": start + 60}
        boto3.session.Session().client("cloudwatch").put_metric_data(Namespace=GROUP, MetricData=[data])  # type: ignore[list-item]
        self.world.preempt(name)
        self.world.settle(name)
        self.world.jobs[name]["attempts"][-1] |= times | {"endedAt": moment(start + 120)}

    def asked(self, name: str, times: int = 1) -> None:
        """Block until the client has asked so many times more how the job is."""
        path = f"/jobs/{name}"
        self.world.await_calls("GET", path, self.world.count("GET", path) + times)

    def preempted(self, name: str) -> None:
        """Preempt the job's attempt, seen by the client while it stops and while it waits again."""
        self.world.preempt(name)
        self.asked(name)
        self.world.settle(name, queue_noticed=False)
        self.asked(name)
        self.world.settle(name)
        self.asked(name)


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


@contextmanager
def meanwhile(script: Callable[[], None]) -> Iterator[None]:
    """Run a script beside the block; whatever it raises interrupts the block, and is raised at its end."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            script()
        except BaseException as error:  # noqa: BLE001 - handed over to the test
            raised.append(error)
            _thread.interrupt_main()  # the block may wait for what the script has not done

    thread = threading.Thread(target=run, daemon=True)
    try:
        try:
            thread.start()
            yield
        finally:
            thread.join(PATIENCE_SECONDS + 10)
    finally:
        if raised:
            raise raised[0]
    if thread.is_alive():
        raise AssertionError("the script has not come to its end")


__all__ = ["BUCKET", "GROUP", "Stage", "World", "environment", "meanwhile", "moto_served", "served"]
