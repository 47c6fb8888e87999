"""LocalStack: ministack, the SageMaker simulator and the deployed templates, started and stopped together."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import httpx

from trainmaster.local.stack import sdk
from trainmaster.local.stack.address import ACCOUNT, REGION, StackAddress, aws_environment, clean_environment
from trainmaster.local.stack.checkout import Checkout
from trainmaster.local.stack.deploy import Deployment
from trainmaster.local.stack.processes import GuardedProcess, exit_on_signals, free_port, listening, memory_folder
from trainmaster.local.stack.signed import get

_START_SECONDS = 60.0


def _ignore_step(_step: str) -> None:
    """Print nothing, for tests."""


@dataclass(slots=True)
class LocalStack:
    """The service on this machine, as a context manager that yields its StackAddress.

    Attributes:
        label: name of the folder of its logs under `.local/stack/logs`.
        limits: SageMaker account limits of the simulator, instances by type; the pools' caps are set alike.
        parameters: template parameters in addition to those of samconfig's environment `local`.
        kinds: the stacks of further kinds of jobs: the folders of their templates, such as `images`, with parameters.
        simulator: further arguments for the simulator.
        pythons: interpreters of environments for entry points, preferred to those of the checkout.
        on_step: called with each step, a sentence without its period.
        checkout: the checkout to deploy.

    Raises SetupMissing or StartFailed on entry.
    """

    label: str = "stack"
    limits: Mapping[str, int] = field(default_factory=lambda: {"ml.p5.48xlarge": 2})
    parameters: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    simulator: tuple[str, ...] = ()
    pythons: tuple[Path, ...] = ()
    on_step: Callable[[str], None] = _ignore_step
    checkout: Checkout = field(default_factory=Checkout.here)
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, init=False)

    def __enter__(self) -> StackAddress:
        """Start everything; stop what was started if a step fails."""
        with contextlib.ExitStack() as opening:
            opening.enter_context(exit_on_signals())
            address = self._start(opening)
            self._open = opening.pop_all()
        return address

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything, in reverse order."""
        self._open.close()

    @property
    def logs(self) -> Path:
        """The folder with the output of every process, of the newest run of this label."""
        return self.checkout.scratch / "logs" / self.label

    def _start(self, opening: contextlib.ExitStack) -> StackAddress:
        self.logs.mkdir(parents=True, exist_ok=True)
        work = Path(
            opening.enter_context(
                tempfile.TemporaryDirectory(prefix="trainmaster-", dir=memory_folder(), ignore_cleanup_errors=True)
            )
        )
        aws_port, sagemaker_port = free_port(), free_port()
        aws, sagemaker = f"http://127.0.0.1:{aws_port}", f"http://127.0.0.1:{sagemaker_port}"
        environment = {**clean_environment(os.environ), **aws_environment(aws, sagemaker)}
        self.on_step("Starting ministack and the SageMaker simulator")
        ministack = self._ministack(opening, environment, aws_port, work)
        settings = sdk.settings(self.logs)
        simulator = self._simulator(opening, {**environment, **settings}, sagemaker_port)
        outputs = self._deploy(environment, aws, ministack)
        simulator.wait_until(lambda: listening(sagemaker_port), _START_SECONDS)
        api_url = f"{aws}/restapis/{outputs['ApiId']}/prod/_user_request_"
        self.on_step("Waiting for the queue to answer")
        ministack.wait_until(lambda: _responds(f"{api_url}/pools"), _START_SECONDS)
        return StackAddress(api_url, aws, sagemaker, outputs, {**settings, **sdk.role_credentials(aws)})

    def _ministack(
        self, opening: contextlib.ExitStack, environment: Mapping[str, str], port: int, work: Path
    ) -> GuardedProcess:
        """Start ministack. Functions inherit its environment, and with it the simulator's address."""
        stack_variables = {name: value for name, value in environment.items() if name != "AWS_ENDPOINT_URL"} | {
            "GATEWAY_PORT": str(port),
            "BIND_HOST": "127.0.0.1",
            "IOT_MTLS_ENABLED": "0",
            "TMPDIR": str(work),
            "STATE_DIR": str(work / "state"),
            "S3_DATA_DIR": str(work / "s3"),
        }
        log = self.logs / "ministack.log"
        return opening.enter_context(
            contextlib.closing(GuardedProcess("ministack", [self.checkout.ministack], stack_variables, log))
        )

    def _simulator(self, opening: contextlib.ExitStack, environment: Mapping[str, str], port: int) -> GuardedProcess:
        limits = [part for kind, limit in self.limits.items() for part in ("--limit", f"{kind}={limit}")]
        aws = environment["AWS_ENDPOINT_URL"]
        # Training scripts need these to reach DynamoDB and S3, as the stack's own clients do.
        shared = ("AWS_", "BOTOCORE_", "SAGEMAKER_")
        container_variables = [part for name, text in environment.items() if name.startswith(shared)
                  for part in ("--container-env", f"{name}={text}")]  # fmt: skip
        command: list[str | Path] = [
            self.checkout.python, "-m", "trainmaster.local.simulator", "--port", str(port), *limits, "--allow-commands",
            "--account", ACCOUNT, "--region", REGION,
            "--events-endpoint", aws, "--events-bus", "default", "--event-source", "trainmaster.local",
            "--logs-endpoint", aws, "--sts-endpoint", aws, "--s3-endpoint", aws,
            *self._pythons(), *container_variables, *self.simulator,
        ]  # fmt: skip
        log = self.logs / "simulator.log"
        return opening.enter_context(contextlib.closing(GuardedProcess("the simulator", command, environment, log)))

    def _pythons(self) -> list[str]:
        """Return the simulator's arguments for the environments in which entry points run."""
        return [part for python in (*self.pythons, *self.checkout.pythons) for part in ("--python", str(python))]

    def _deploy(self, environment: Mapping[str, str], aws: str, ministack: GuardedProcess) -> dict[str, str]:
        """Build and deploy the real templates, and return the outputs of their stacks."""
        pools = ",".join(f"{kind}={limit}" for kind, limit in self.limits.items())
        sam = {
            **environment,
            "PATH": f"{self.checkout.sam.parent}:{environment.get('PATH', os.defpath)}",
            "SAM_CLI_TELEMETRY": "0",
            # The default is to ask for the stack's state every five seconds.
            "SAM_CLI_POLL_DELAY": "0.5",
        }
        deployment = Deployment(self.checkout, {"Pools": pools, **self.parameters}, self.kinds, sam, aws, self.logs)
        self.on_step("Building the functions")
        deployment.build()
        ministack.wait_until(lambda: _healthy(aws), _START_SECONDS)
        self.on_step("Deploying template.yaml")
        return deployment.deploy()


def _healthy(aws: str) -> bool:
    try:
        return httpx.get(f"{aws}/_ministack/health", timeout=5).is_success
    except httpx.TransportError:
        return False


def _responds(url: str) -> bool:
    """Return whether a signed request succeeds: API Gateway, the function and the table all work."""
    try:
        return get(url).is_success
    except httpx.TransportError:
        return False
