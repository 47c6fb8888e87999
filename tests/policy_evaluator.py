"""A real evaluator of IAM policies, offline: `@cloud-copilot/iam-simulate` in a process of Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).parent
INSTALLED = HERE.parent / ".local" / "iam-simulate"
Policy = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """A request to AWS as IAM sees it.

    Attributes:
        action: such as `sqs:SendMessage`.
        resource: its ARN, or "*" for an action without resources.
        context: the context keys that AWS sends with it. A key that the action does not have raises `ValueError`.
        principal: the ARN of the caller; a role of this account unless another is given.
    """

    action: str
    resource: str = "*"
    context: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    principal: str = "arn:aws:iam::111122223333:role/caller"
    account: str = "111122223333"


class PolicyEvaluator:
    """Tells whether policies allow a request. A context manager: its process ends with the block.

    Raises `FileNotFoundError` where the evaluator is not installed.
    """

    def __enter__(self) -> Self:
        if not (INSTALLED / "node_modules").is_dir():
            raise FileNotFoundError("no policy evaluator in .local/iam-simulate: run `make .local/iam-simulate/.stamp`")
        node = shutil.which("node") or "node"
        command = [node, str(HERE / "policy_evaluator.mjs"), str(INSTALLED)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def allows(
        self,
        request: Request,
        policies: Sequence[Policy],
        *,
        resource_policy: Policy | None = None,
        boundary: Policy | None = None,
    ) -> bool:
        """Return whether identity policies, a resource's policy and a permissions boundary together allow a request.

        Raises `ValueError` for a request or a policy that IAM would not accept.
        """
        answer = self._asked(self._simulation(request, policies, resource_policy, boundary))
        if "error" in answer or answer["ignored"]:
            raise ValueError(f"{request}: {answer}")
        return bool(answer["result"] == "Allowed")

    def _asked(self, simulation: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(simulation) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    @staticmethod
    def _simulation(
        request: Request, policies: Sequence[Policy], resource_policy: Policy | None, boundary: Policy | None
    ) -> dict[str, Any]:
        simulation: dict[str, Any] = {
            "request": {
                "principal": request.principal,
                "action": request.action,
                "resource": {"resource": request.resource, "accountId": request.account},
                "contextVariables": dict(request.context),
            },
            "identityPolicies": [{"name": f"policy{number}", "policy": each} for number, each in enumerate(policies)],
            "serviceControlPolicies": [],
            "resourceControlPolicies": [],
        }
        if resource_policy:
            simulation["resourcePolicy"] = resource_policy
        if boundary:
            simulation["permissionBoundaryPolicies"] = [{"name": "boundary", "policy": boundary}]
        return simulation


EVERYTHING: Policy = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}


def allowed(evaluator: PolicyEvaluator, request: Request, policies: Sequence[Policy], **options: Any) -> bool:
    """Return whether a caller with these policies may; keys and roles leave it to the policies of their account."""
    account = {"Effect": "Allow", "Principal": {"AWS": request.account}, "Action": request.action}
    trusting = {
        "kms": {"Version": "2012-10-17", "Statement": {**account, "Resource": "*"}},
        "sts": {"Version": "2012-10-17", "Statement": account},
    }
    return evaluator.allows(request, policies, resource_policy=trusting.get(request.action.split(":")[0]), **options)
