"""`python -m trainmaster.local.simulator`: the simulator as a server on this machine, for the local stack.

It prints one line when it is ready (`ready http://127.0.0.1:PORT`), and ends on SIGINT or SIGTERM. It listens on the
loopback interface unless `--host` says otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import boto3

from trainmaster.local.signals import signal_pipe
from trainmaster.local.simulator.clock import WallClock
from trainmaster.local.simulator.containers import opt_ml
from trainmaster.local.simulator.containers.factory import ContainerFactory
from trainmaster.local.simulator.containers.interpreters import Interpreters
from trainmaster.local.simulator.containers.runner import CommandRunner
from trainmaster.local.simulator.containers.transfer import ObjectStore
from trainmaster.local.simulator.events.delivery import event_sender, log_sender
from trainmaster.local.simulator.events.events import AWS_SOURCE
from trainmaster.local.simulator.events.log_lines import LogSink
from trainmaster.local.simulator.hostility.hostility import Hostility
from trainmaster.local.simulator.service.engine import Account
from trainmaster.local.simulator.service.profiles import PREFIX, profile_from
from trainmaster.local.simulator.simulator import SageMakerSimulator
from trainmaster.local.simulator.wire.accounts import Accounts
from trainmaster.local.simulator.wire.invocations import Invocations
from trainmaster.local.simulator.wire.server import serve

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
"""Variables of the server's environment that scripts get, beside those of pip; none are credentials or endpoints."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="simulator: %(levelname)s %(message)s")
    with signal_pipe() as wait_for_signal:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        _serve(options, wait_for_signal)
    return 0


def _serve(options: argparse.Namespace, wait_for_signal: Callable[[], object]) -> None:
    with _simulator(options) as simulator:
        server = serve(simulator, options.host, options.port, _invocations(options), _accounts(options))
        thread = threading.Thread(target=server.serve_forever, name="simulator-server", daemon=True)
        thread.start()
        sys.stdout.write(f"ready http://{options.host}:{server.server_port}\n")
        sys.stdout.flush()
        wait_for_signal()
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def _simulator(options: argparse.Namespace) -> Iterator[SageMakerSimulator]:
    """Start the simulator with its dependencies, and stop them in reverse order."""
    with contextlib.ExitStack() as stack:
        clock = WallClock()
        sink = logs = containers = None
        if options.events_endpoint:
            sender = event_sender(_client("events", options.events_endpoint, options), options.events_bus)
            stack.callback(sender.close)
            sink = sender.put
        if options.logs_endpoint:
            lines = log_sender(_client("logs", options.logs_endpoint, options))
            stack.callback(lines.close)
            logs = lines.put
        if options.allow_commands:
            containers = _runner(options, clock, logs, stack)
        simulator = stack.enter_context(
            SageMakerSimulator(
                clock,
                limits=dict(options.limit),
                spot_limits=dict(options.spot_limit) if options.spot_limit else None,
                capacity=dict(options.capacity),
                rates=dict(options.rate),
                profile=profile_from(dict(options.profile)),
                speed=options.speed,
                account=Account(options.account, options.region),
                source=options.event_source,
                sink=sink,
                grace=timedelta(seconds=options.grace),
                containers=containers,
                logs=logs,
                **_hostility(options),
            )
        )
        for name, instance_type, count, hours in options.plan:
            simulator.add_plan(name, instance_type, count, (clock.now(), clock.now() + timedelta(hours=hours)))
        yield simulator


def _hostility(options: argparse.Namespace) -> dict[str, Any]:
    if options.hostile is None:
        return {}
    return {"hostility": Hostility.moderate(), "rng": random.Random(options.hostile)}  # noqa: S311 - a simulation


def _invocations(options: argparse.Namespace) -> Invocations | None:
    if not options.model_server:
        return None
    return Invocations(options.model_server, options.region, options.instance_concurrency)


def _accounts(options: argparse.Namespace) -> Accounts | None:
    if not options.sts_endpoint:
        return None
    return Accounts(_client("sts", options.sts_endpoint, options), options.account)


def _runner(
    options: argparse.Namespace, clock: WallClock, logs: LogSink | None, stack: contextlib.ExitStack
) -> CommandRunner:
    root = options.work_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trainmaster-")))
    inherited = {name: text for name, text in os.environ.items() if name in INHERITED or name.startswith("PIP_")}
    factory = ContainerFactory(
        root.resolve(),
        {**inherited, **dict(options.container_env)},
        store=ObjectStore(_client("s3", options.s3_endpoint, options)) if options.s3_endpoint else None,
        interpreters=Interpreters(options.python),
        mounts=opt_ml.why_unavailable() is None,
    )
    return CommandRunner(factory, clock, logs=logs)


def _client(service: Any, endpoint: str, options: argparse.Namespace) -> Any:
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name=options.region,
        aws_access_key_id=options.account,
        aws_secret_access_key="local",  # noqa: S106 - for endpoints on this machine
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainmaster.local.simulator", description=__doc__)
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=int, default=0, help="port to listen on; 0 (the default) selects a free one")
    add("--account", default=Account().number, help="number of the account")
    add("--region", default=Account().region, help="Region")
    _add_account_options(parser)
    _add_job_options(parser)
    _add_endpoint_options(parser)
    return parser


def _add_account_options(parser: argparse.ArgumentParser) -> None:
    add = partial(parser.add_argument, action="append", default=[])
    add("--limit", type=_count, metavar="TYPE=N", help="account quota of an instance type")
    add("--spot-limit", type=_count, metavar="TYPE=N", help="account quota of an instance type for spot training")
    add("--capacity", type=_count, metavar="TYPE=N", help="EC2 capacity of an instance type")
    plan = "a training plan that is active from now on, for this many hours"
    add("--plan", type=_plan, metavar="NAME=TYPE:N:HOURS", help=plan)
    hostile = "misbehave as SageMaker may: answers late or lost, failed calls, stuck stops; the seed repeats the draws"
    parser.add_argument("--hostile", type=int, metavar="SEED", help=hostile)
    add("--rate", type=_rate, metavar="OPERATION=N", help="calls per second; none: no limit")


def _add_job_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    profile = f"profile of every job, such as starting_seconds=1; {PREFIX}* variables of a request take precedence"
    add("--profile", type=_pair, action="append", default=[], metavar="FIELD=VALUE", help=profile)
    add("--speed", type=float, default=1.0, help="divides all durations of the profile")
    add("--grace", type=float, default=120.0, help="seconds from SIGTERM to SIGKILL")
    add("--allow-commands", action="store_true", help="run the ContainerEntrypoint of requests on this machine")
    env = "environment variable of every command; variables of a request take precedence"
    add("--container-env", type=_pair, action="append", default=[], metavar="NAME=VALUE", help=env)
    python = (
        "interpreter of an environment whose packages entry points find; of several, the first with those of the image"
    )
    add("--python", type=Path, action="append", default=[], metavar="PATH", help=python)
    add("--work-dir", type=Path, help="keep the directories and checkpoints of jobs here, not in a temporary folder")


def _add_endpoint_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--events-endpoint", metavar="URL", help="EventBridge endpoint for events")
    add("--events-bus", default="default", metavar="NAME", help="event bus for events")
    add("--event-source", default=AWS_SOURCE, help="source of the events; the bus must accept it")
    add("--logs-endpoint", metavar="URL", help="CloudWatch Logs endpoint for the logs of jobs")
    add(
        "--s3-endpoint", metavar="URL", help="S3 endpoint for the input channels, artifacts and checkpoints of commands"
    )
    sts = "STS endpoint that resolves access keys to accounts, for endpoints of several accounts"
    add("--sts-endpoint", metavar="URL", help=sts)
    add("--model-server", metavar="URL", help="model server for InvokeEndpoint, at URL/ENDPOINT/VARIANT; default: moto")
    concurrency = "concurrent requests of an endpoint's instance"
    add("--instance-concurrency", type=int, metavar="N", help=concurrency)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"'{text}' does not have the form name=value")
    return name, value


def _count(text: str) -> tuple[str, int]:
    name, value = _pair(text)
    return name, int(value)


def _plan(text: str) -> tuple[str, str, int, float]:
    name, value = _pair(text)
    instance_type, count, hours = value.split(":")
    return name, instance_type, int(count), float(hours)


def _rate(text: str) -> tuple[str, float | None]:
    name, value = _pair(text)
    return name, None if value == "none" else float(value)


if __name__ == "__main__":
    sys.exit(main())
