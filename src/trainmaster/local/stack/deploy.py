"""Builds the SAM projects of a checkout and deploys each as a stack, in the order in which AWS needs them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmaster.local.stack.build import as_arguments, build_template, local_parameters
from trainmaster.local.stack.checkout import Checkout, SamProject
from trainmaster.local.stack.layer import install_packages
from trainmaster.local.stack.processes import run
from trainmaster.local.stack.signed import client

_STACK = "trainmaster-local"
_SETTINGS = "JobKindSettings"
"""Output of the stack of a kind of jobs, and parameter of the queue's own stack."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The stacks of a queue.

    Attributes:
        checkout: the checkout to deploy.
        queue: template parameters of the queue's own stack.
        kinds: template parameters of the stacks of further kinds of jobs, by the folder of their template.
        environment: environment variables of SAM.
        endpoint: URL of ministack.
        logs: folder of SAM's output.
    """

    checkout: Checkout
    queue: Mapping[str, str]
    kinds: Mapping[str, Mapping[str, str]]
    environment: Mapping[str, str]
    endpoint: str
    logs: Path

    def build(self) -> None:
        """Build the functions and layers that no earlier run has built. Raises StartFailed."""
        for name, parameters in {"": self.queue, **self.kinds}.items():
            self._built(self.checkout.project(name), parameters)

    def deploy(self) -> dict[str, str]:
        """Deploy the stacks and return the outputs of all. Raises StartFailed.

        The stacks of kinds of jobs import the queue's exports, and the queue needs their settings: it comes twice.
        """
        outputs = self._deploy("", self.queue)
        settings: dict[str, object] = {}
        for name, parameters in self.kinds.items():
            outputs |= self._deploy(name, parameters)
            settings |= json.loads(outputs.pop(_SETTINGS))
        if settings:
            self._deploy("", {**self.queue, _SETTINGS: json.dumps(settings)})
        _set_concurrency_as_numbers(self.endpoint)
        return outputs

    def _built(self, project: SamProject, parameters: Mapping[str, str]) -> Path:
        install_packages(project, self.environment)
        return build_template(project, local_parameters(project, parameters), self.environment)

    def _deploy(self, name: str, parameters: Mapping[str, str]) -> dict[str, str]:
        """Deploy one stack and return its outputs."""
        project = self.checkout.project(name)
        stack = f"{_STACK}-{name}" if name else _STACK
        command: list[str | Path] = [
            self.checkout.sam, "deploy", "--template-file", self._built(project, parameters),
            "--config-file", project.samconfig, "--config-env", "local", "--stack-name", stack,
            *as_arguments(local_parameters(project, parameters)),
        ]  # fmt: skip
        run("sam deploy", command, self.environment, self.logs / f"deploy-{stack}.log")
        found = client("cloudformation", self.endpoint).describe_stacks(StackName=stack)["Stacks"][0]
        return {output["OutputKey"]: output["OutputValue"] for output in found["Outputs"]}


def _set_concurrency_as_numbers(aws: str) -> None:
    """Set MaximumConcurrency of the event sources again, as numbers.

    CloudFormation converts template parameters, which are text, to the type of a property. ministack does not, and
    delivers no message if it cannot compare the limit with a number.
    """
    functions = client("lambda", aws)
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        bound = mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
        if bound is not None:
            functions.update_event_source_mapping(
                UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": int(bound)}
            )
