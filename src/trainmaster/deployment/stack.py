"""One CloudFormation stack: its state, its change sets, their execution with progress, and its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trainmaster.client.api.credentials import error_code
from trainmaster.client.api.errors import Conflict, NotFound, Refused

POLL_SECONDS: Final = 3.0
MAX_POLLS: Final = 2400
"""Two hours, more than any resource of the template may take."""
VERSION_TAG: Final = "trainmaster:version"
"""Tag of the stack with the release that deployed it."""
_NEW: Final = ("REVIEW_IN_PROGRESS", "DELETE_COMPLETE")
_STILLBORN: Final = frozenset({"ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"})
_EMPTY: Final = ("didn't contain changes", "No updates are to be performed")
_REASONS: Final = ("Resource creation cancelled", "Resource update cancelled")
"""Reasons of resources that failed only because another one did."""


@dataclass(frozen=True, slots=True)
class Change:
    """One resource that a change set changes.

    Attributes:
        action: Add, Modify, Remove, Import or Dynamic.
        name: logical id.
        type: type of the resource.
        replacement: True, False or Conditional; empty for what is not modified.
        causes: properties, tags or parameters that change.
    """

    action: str
    name: str
    type: str
    replacement: str = ""
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """A change set that can be executed; without changes there is none to execute, and its name is empty."""

    name: str
    changes: tuple[Change, ...]
    creates: bool


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a stack's progress."""

    at: Any
    status: str
    name: str
    type: str
    reason: str

    @property
    def failed(self) -> bool:
        """True if this resource is a cause of a failure."""
        return self.status.endswith("FAILED") and not self.reason.startswith(_REASONS)


@dataclass(slots=True)
class Stack:
    """A stack in one Region.

    Args:
        name: of the stack.
        client: of CloudFormation.
        sleep: waits for so many seconds.
    """

    name: str
    client: Any
    sleep: Callable[[float], None]
    _seen: set[str] = field(default_factory=set)

    def describe(self) -> dict[str, Any] | None:
        """Return the stack as CloudFormation describes it; None if there is none."""
        from botocore.exceptions import ClientError

        try:
            found: dict[str, Any] = self.client.describe_stacks(StackName=self.name)["Stacks"][0]
        except ClientError as error:
            if error_code(error) == "ValidationError" and "does not exist" in str(error):
                return None
            raise
        return None if found["StackStatus"] == "DELETE_COMPLETE" else found

    def existing(self) -> dict[str, Any]:
        """Return the description. Raises NotFound."""
        found = self.describe()
        if found is None or found["StackStatus"] == "REVIEW_IN_PROGRESS":
            raise NotFound(f"There is no stack {self.name} here.", hint="Check --stack, --region and --profile.")
        return found

    def check_idle(self, description: Mapping[str, Any] | None) -> bool:
        """Return whether the stack has to be created. Raises Conflict if its state allows no deployment."""
        status = "" if description is None else str(description["StackStatus"])
        if not status or status in _NEW:
            return True
        if status in _STILLBORN:
            message = f"The first deployment of {self.name} failed, and only its record is left ({status})."
            raise Conflict(message, type="Stillborn", hint=f"Delete it: trainmaster uninstall --stack {self.name}")
        if status.endswith("IN_PROGRESS"):
            raise Conflict(
                f"A deployment of {self.name} is under way ({status}).", hint="Repeat this when it has ended."
            )
        if status == "DELETE_FAILED":
            hint = f"Repeat `trainmaster uninstall --stack {self.name}`; its console names what could not be deleted."
            raise Conflict(f"The deletion of {self.name} failed ({status}).", hint=hint)
        if status.endswith("FAILED"):
            hint = f"Run `aws cloudformation continue-update-rollback --stack-name {self.name}`, then repeat this."
            raise Conflict(f"An update of {self.name} failed, and so did its rollback ({status}).", hint=hint)
        return False

    def plan(  # noqa: PLR0913 - the members of a change set
        self,
        template_url: str,
        parameters: list[dict[str, Any]],
        tags: Mapping[str, str],
        *,
        creates: bool,
        label: str,
        adopts: bool = False,
    ) -> ChangeSet:
        """Create a change set and return it once it is complete. Raises Refused for a template that is not accepted.

        With `adopts`, existing resources with the names of the template become resources of the stack.
        """
        arguments: dict[str, Any] = {"ImportExistingResources": True} if adopts else {}
        self.client.create_change_set(
            StackName=self.name,
            ChangeSetName=label,
            ChangeSetType="CREATE" if creates else "UPDATE",
            TemplateURL=template_url,
            Parameters=parameters,
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
            **arguments,
        )
        found = self._complete(label)
        if found["Status"] == "FAILED":
            self.discard(ChangeSet(label, (), creates))
            reason = str(found.get("StatusReason", "no reason given"))
            if any(each in reason for each in _EMPTY):
                return ChangeSet("", (), creates)
            raise Refused(f"CloudFormation does not accept this deployment: {reason}", type="ChangeSetFailed")
        return ChangeSet(label, tuple(self._changes(label)), creates)

    def discard(self, change_set: ChangeSet) -> None:
        """Delete a change set, and the empty stack that it was to create."""
        if change_set.name:
            self.client.delete_change_set(StackName=self.name, ChangeSetName=change_set.name)
        if change_set.creates:
            self.client.delete_stack(StackName=self.name)

    def execute(self, change_set: ChangeSet) -> Iterator[Event]:
        """Execute a change set and yield the stack's events until its end. Raises Refused if it fails."""
        self._seen = {event["EventId"] for event in self._raw_events()}
        self.client.execute_change_set(StackName=self.name, ChangeSetName=change_set.name)
        yield from self._followed("The deployment failed", ("CREATE_COMPLETE", "UPDATE_COMPLETE"))

    def delete(self) -> Iterator[Event]:
        """Delete the stack and yield its events until its end. Raises Refused if it fails."""
        found = self.existing()
        self._seen = {event["EventId"] for event in self._raw_events()}
        self.client.delete_stack(StackName=self.name)
        # A deleted stack is found by its ID only.
        self.name = found["StackId"]
        yield from self._followed("The deletion failed", ("DELETE_COMPLETE",))

    def retained(self, document: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return type and physical name of the resources that outlive the stack, by the template's policies."""
        pages = self.client.get_paginator("list_stack_resources").paginate(StackName=self.name)
        here = {one["LogicalResourceId"]: one for page in pages for one in page["StackResourceSummaries"]}
        names = [name for name, one in document["Resources"].items() if one.get("DeletionPolicy") == "Retain"]
        found = [here[name] for name in names if name in here]
        return [(one["ResourceType"], one["PhysicalResourceId"]) for one in found if one.get("PhysicalResourceId")]

    def _complete(self, label: str) -> dict[str, Any]:
        for _ in range(MAX_POLLS):
            found: dict[str, Any] = self.client.describe_change_set(StackName=self.name, ChangeSetName=label)
            if found["Status"] in ("CREATE_COMPLETE", "FAILED"):
                return found
            self.sleep(POLL_SECONDS)
        raise Conflict("CloudFormation did not complete the change set in time.", hint="Repeat this.")

    def _changes(self, label: str) -> Iterator[Change]:
        arguments: dict[str, str] = {"StackName": self.name, "ChangeSetName": label}
        while True:
            page = self.client.describe_change_set(**arguments)
            yield from (_change(each["ResourceChange"]) for each in page["Changes"] if "ResourceChange" in each)
            if not page.get("NextToken"):
                return
            arguments["NextToken"] = page["NextToken"]

    def _followed(self, failure: str, well: tuple[str, ...]) -> Iterator[Event]:
        """Yield new events until the stack's operation has ended. Raises Refused, with the causes of a failure."""
        causes: list[Event] = []
        for _ in range(MAX_POLLS):
            status = self._status()
            for event in self._new_events():
                causes += [event] if event.failed else []
                yield event
            if not status.endswith("IN_PROGRESS"):
                if status in well:
                    return
                raise Refused(f"{failure} ({status}). {_causes(causes)}", type="DeploymentFailed")
            self.sleep(POLL_SECONDS)
        raise Conflict("The stack's operation has not ended in two hours.", hint="See the console of CloudFormation.")

    def _status(self) -> str:
        described = self.client.describe_stacks(StackName=self.name)["Stacks"]
        return str(described[0]["StackStatus"])

    def _new_events(self) -> list[Event]:
        raw = [event for event in self._raw_events() if event["EventId"] not in self._seen]
        self._seen |= {event["EventId"] for event in raw}
        return [
            Event(
                each["Timestamp"],
                each.get("ResourceStatus", ""),
                each["LogicalResourceId"],
                each.get("ResourceType", ""),
                each.get("ResourceStatusReason", ""),
            )
            for each in reversed(raw)
        ]

    def _raw_events(self) -> list[dict[str, Any]]:
        """Return events, newest first, up to one that is known."""
        found: list[dict[str, Any]] = []
        for page in self.client.get_paginator("describe_stack_events").paginate(StackName=self.name):
            found += page["StackEvents"]
            if any(event["EventId"] in self._seen for event in page["StackEvents"]):
                break
        return found


def kept_parameters(description: Mapping[str, Any] | None, declared: Iterable[str]) -> dict[str, str]:
    """Return the present values of the stack's parameters that the template still has."""
    found = {} if description is None else description
    values = {each["ParameterKey"]: each.get("ParameterValue", "") for each in found.get("Parameters", [])}
    return {name: values[name] for name in declared if name in values}


def outputs(description: Mapping[str, Any]) -> dict[str, str]:
    """Return the outputs of a stack by name."""
    return {each["OutputKey"]: each["OutputValue"] for each in description.get("Outputs", [])}


def deployed_version(description: Mapping[str, Any]) -> str | None:
    """Return the release that deployed a stack; None if its tags do not tell."""
    return next((each["Value"] for each in description.get("Tags", []) if each["Key"] == VERSION_TAG), None)


def _change(raw: Mapping[str, Any]) -> Change:
    targets = [each.get("Target", {}) for each in raw.get("Details", [])]
    causes = {str(each.get("Name") or each.get("Attribute", "")) for each in targets}
    return Change(
        raw["Action"], raw["LogicalResourceId"], raw["ResourceType"], raw.get("Replacement", ""), tuple(sorted(causes))
    )


def _causes(events: list[Event]) -> str:
    named = [f"{event.name} ({event.type}): {event.reason}" for event in events if event.reason]
    return " ".join(named[:3]) or "CloudFormation names no reason; see its console."
