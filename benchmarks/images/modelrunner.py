"""CPU time of ModelRunner's own scheduler, run from a checkout that the user names; none of its code is here.

    python -m benchmarks.images.modelrunner CHECKOUT ADDRESS ROWS   prints the CPU of its cycles as JSON

It is a process of its own, since ModelRunner reads its settings from the environment and needs packages of its own
(`dacite`, `cachetools`, `aws-embedded-metrics`, `geojson`). Its table is on the same engine as ours, its endpoints
answer at once, and its image queue is empty. Packages that its scheduler imports and does not use, as GDAL, are
stand-ins.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import logging
import os
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

CYCLES = 10
ENDPOINTS = 10
PACKAGE = "aws.osml.model_runner"
TABLE = "modelrunner-jobs"


def measure(checkout: Path, address: str, rows: int) -> dict[str, Any]:
    """Return the CPU of cycles that each start a request, with so many requests in the table.

    Args:
        checkout: of github.com/awslabs/osml-model-runner.
        address: URL of a DynamoDB engine.
        rows: of its table.
    """
    command = [sys.executable, "-m", "benchmarks.images.modelrunner", str(checkout), address, str(rows)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


class _AnyType(type):
    """A class that has each attribute that is asked for, and that is a decorator, too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _any_type(name)


def _any_type(name: str) -> Any:
    members = {"__init__": lambda *_, **__: None, "__call__": lambda _, decorated: decorated}
    return _AnyType(name, (), members)


class _StandIn(types.ModuleType):
    """A module of which only names are imported."""

    __path__: list[str] = []  # noqa: RUF012 -- of a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _any_type(name)


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins for GDAL, numba and OversightML's toolkit."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:  # noqa: ARG002
        toolkit = name.startswith("aws.osml.") and not name.startswith(PACKAGE)
        if toolkit or name.partition(".")[0] in ("osgeo", "numba"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is to be run."""


class _SageMaker:
    """SageMaker, whose endpoints have room for everything."""

    def describe_endpoint(self, EndpointName: str) -> dict[str, Any]:  # noqa: N803 -- as boto3 names it
        variants = [{"VariantName": "blue", "CurrentInstanceCount": 1000, "CurrentWeight": 1.0}]
        return {"EndpointArn": f"arn:{EndpointName}", "EndpointName": EndpointName, "ProductionVariants": variants}

    def list_tags(self, ResourceArn: str) -> dict[str, Any]:  # noqa: N803, ARG002
        return {"Tags": []}


def _prepare(checkout: Path, address: str) -> None:
    """Make its scheduler importable, and lead its clients to the engine."""
    names = ("IMAGE_REQUEST_TABLE", "OUTSTANDING_IMAGE_REQUEST_TABLE", "REGION_REQUEST_TABLE", "FEATURE_TABLE")
    names += ("IMAGE_QUEUE", "IMAGE_DLQ", "REGION_QUEUE", "WORKERS_PER_CPU", "WORKERS")
    os.environ |= dict.fromkeys(names, "1") | {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_ENDPOINT_URL": address,
        "AWS_EMF_ENVIRONMENT": "local",
    }
    source = checkout / "src"
    package = types.ModuleType(PACKAGE)
    # The package itself imports the whole of ModelRunner.
    package.__path__ = [str(source / PACKAGE.replace(".", "/"))]
    sys.path.insert(0, str(source))
    sys.modules[PACKAGE] = package
    sys.meta_path.append(_StandIns())


def _scheduler(rows: int) -> Any:
    """Return ModelRunner's scheduler over a table with so many requests."""
    # ModelRunner's modules exist only in its checkout.
    api, database, scheduler = (
        importlib.import_module(f"{PACKAGE}.{name}") for name in ("api", "database", "scheduler")
    )
    table = database.RequestedJobsTable(TABLE)
    keys = (("endpoint_id", "HASH"), ("job_id", "RANGE"))
    table.client.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        BillingMode="PAY_PER_REQUEST",
    )
    with table.table.batch_writer() as batch:
        for number in range(rows):
            request = api.ImageRequest.from_external_message(_request(number))
            record = database.ImageRequestStatusRecord.new_from_request(request, region_count=2)
            batch.put_item(Item=record.to_ddb_item())
    queue = scheduler.BufferedImageRequestQueue("images", "dead", table, max_jobs_lookahead=rows)
    made = scheduler.EndpointLoadImageScheduler(queue, scheduler.EndpointCapacityEstimator(_SageMaker()))
    made.sm_client = _SageMaker()
    return made


def _request(number: int) -> dict[str, Any]:
    """Return the request that our own benchmark has, too."""
    from benchmarks.images.stage import _request as same_request

    return same_request(f"image-{number:07d}", f"ships-{number % ENDPOINTS:03d}") | {
        "imageProcessorParameters": {"TargetVariant": "blue"}
    }


def _cycles(scheduler: Any) -> dict[str, Any]:
    """Return the processor seconds of cycles that start a request each."""
    started, times = 0, []
    for _ in range(CYCLES):
        begin = time.process_time()
        started += scheduler.get_next_scheduled_request() is not None
        times.append(time.process_time() - begin)
    if started != CYCLES:
        raise RuntimeError(f"{started} of {CYCLES} cycles started a request")
    return {"cycles": CYCLES, "cpu_ms": round(1000 * sorted(times)[CYCLES // 2], 2)}


def _main(arguments: list[str]) -> None:
    checkout, address, rows = arguments
    logging.disable(logging.CRITICAL)
    # Before ModelRunner's settings lead all clients to the engine.
    import benchmarks.images.stage  # noqa: F401

    _prepare(Path(checkout), address)
    with contextlib.redirect_stdout(io.StringIO()):  # its metrics
        found = _cycles(_scheduler(int(rows)))
    sys.stdout.write(json.dumps({"rows": int(rows), **found}) + "\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
