"""One stack: its states in sentences, change sets without changes, and the causes of a failure."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from trainmaster.client.api.errors import Conflict, NotFound, Refused
from trainmaster.deployment.stack import Change, ChangeSet, Stack, deployed_version, kept_parameters

AT = datetime(2026, 11, 20, 13, 0, tzinfo=timezone.utc)


class CloudFormation:
    """CloudFormation with one stack, whose next statuses and events the test scripts."""

    def __init__(self, *statuses: str) -> None:
        self.statuses = list(statuses)
        self.change_set: dict[str, Any] = {"Status": "CREATE_COMPLETE", "Changes": []}
        self.pages: list[list[dict[str, Any]]] = []
        self.events: list[dict[str, Any]] = []
        self.later: list[list[dict[str, Any]]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def describe_stacks(self, **_: Any) -> dict[str, Any]:
        if not self.statuses:
            message = "Stack with id trainmaster does not exist"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "DescribeStacks")
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return {"Stacks": [{"StackStatus": status, "StackId": "arn:stack/1"}]}

    def describe_change_set(self, **arguments: Any) -> dict[str, Any]:
        if not self.pages:
            return self.change_set
        at = int(arguments.get("NextToken", 0))
        more = {"NextToken": str(at + 1)} if at + 1 < len(self.pages) else {}
        return self.change_set | {"Changes": [{"ResourceChange": one} for one in self.pages[at]]} | more

    def get_paginator(self, operation: str) -> Any:
        assert operation == "describe_stack_events"
        if self.later:
            self.events = [*self.later.pop(0), *self.events]
        return SimpleNamespace(paginate=lambda **_: [{"StackEvents": list(self.events)}])

    def __getattr__(self, operation: str) -> Any:
        return lambda **arguments: self.calls.append((operation, arguments))


def stack_of(cloudformation: CloudFormation) -> Stack:
    return Stack("trainmaster", cloudformation, lambda _: None)


def event(number: int, status: str, name: str, reason: str = "") -> dict[str, Any]:
    members = {"EventId": str(number), "Timestamp": AT, "ResourceStatus": status, "LogicalResourceId": name}
    return members | {"ResourceType": "AWS::Lambda::Function", "ResourceStatusReason": reason}


def planned(cloudformation: CloudFormation, *, creates: bool = False) -> ChangeSet:
    return stack_of(cloudformation).plan("https://template", [], {"a": "b"}, creates=creates, label="l")


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"])
def test_a_stack_at_rest_is_updated(status: str) -> None:
    stack = stack_of(CloudFormation(status))
    assert stack.check_idle(stack.describe()) is False


@pytest.mark.parametrize("statuses", [(), ("REVIEW_IN_PROGRESS",), ("DELETE_COMPLETE",)])
def test_no_stack_or_an_empty_one_is_created(statuses: tuple[str, ...]) -> None:
    stack = stack_of(CloudFormation(*statuses))
    assert stack.check_idle(stack.describe()) is True
    with pytest.raises(NotFound):
        stack.existing()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("ROLLBACK_COMPLETE", "first deployment of trainmaster failed"),
        ("CREATE_FAILED", "first deployment"),
        ("UPDATE_IN_PROGRESS", "under way"),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "under way"),
        ("DELETE_IN_PROGRESS", "under way"),
        ("UPDATE_ROLLBACK_FAILED", "so did its rollback"),
        ("DELETE_FAILED", "deletion"),
    ],
)
def test_other_states_are_a_sentence_with_what_to_do(status: str, words: str) -> None:
    stack = stack_of(CloudFormation(status))
    with pytest.raises(Conflict, match=words) as raised:
        stack.check_idle(stack.describe())
    assert raised.value.hint


@pytest.mark.parametrize(
    "reason", ["The submitted information didn't contain changes. Submit", "No updates are to be performed."]
)
def test_a_change_set_without_changes_is_deleted_and_no_error(reason: str) -> None:
    cloudformation = CloudFormation("CREATE_COMPLETE")
    cloudformation.change_set = {"Status": "FAILED", "StatusReason": reason, "Changes": []}
    assert planned(cloudformation) == ChangeSet("", (), creates=False)
    assert [name for name, _ in cloudformation.calls] == ["create_change_set", "delete_change_set"]


def test_a_refused_template_is_told_and_leaves_no_empty_stack() -> None:
    cloudformation = CloudFormation("REVIEW_IN_PROGRESS")
    cloudformation.change_set = {"Status": "FAILED", "StatusReason": "A PRIVATE API needs VpcEndpointIds"}
    with pytest.raises(Refused, match="needs VpcEndpointIds"):
        planned(cloudformation, creates=True)
    assert [name for name, _ in cloudformation.calls][-2:] == ["delete_change_set", "delete_stack"]


def test_all_pages_of_changes_are_read() -> None:
    cloudformation = CloudFormation("CREATE_COMPLETE")
    one = {"Action": "Modify", "LogicalResourceId": "A", "ResourceType": "T", "Replacement": "True"}
    details = {"Details": [{"Target": {"Attribute": "Properties", "Name": "Code"}}, {"Target": {"Attribute": "Tags"}}]}
    cloudformation.pages = [[one | details], [{"Action": "Add", "LogicalResourceId": "B", "ResourceType": "T"}]]
    assert planned(cloudformation).changes == (
        Change("Modify", "A", "T", "True", ("Code", "Tags")),
        Change("Add", "B", "T"),
    )


def test_events_come_once_in_their_order_and_earlier_ones_never() -> None:
    cloudformation = CloudFormation("UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE")
    cloudformation.events = [event(1, "CREATE_COMPLETE", "old")]
    cloudformation.later = [[], [event(3, "UPDATE_COMPLETE", "a"), event(2, "UPDATE_IN_PROGRESS", "a")], []]
    found = list(stack_of(cloudformation).execute(ChangeSet("l", (), creates=False)))
    assert [(one.status, one.name) for one in found] == [("UPDATE_IN_PROGRESS", "a"), ("UPDATE_COMPLETE", "a")]


def test_a_failure_names_its_cause_and_not_what_was_cancelled_with_it() -> None:
    cloudformation = CloudFormation("UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE")
    failed = event(2, "UPDATE_FAILED", "ApiFunction", "the role cannot be assumed")
    cancelled = event(3, "UPDATE_FAILED", "ManagerFunction", "Resource update cancelled")
    cloudformation.later = [[], [cancelled, failed], []]
    with pytest.raises(Refused) as raised:
        list(stack_of(cloudformation).execute(ChangeSet("l", (), creates=False)))
    assert raised.value.message == (
        "The deployment failed (UPDATE_ROLLBACK_COMPLETE). "
        "ApiFunction (AWS::Lambda::Function): the role cannot be assumed"
    )


def test_a_deleted_stack_is_followed_by_its_id() -> None:
    cloudformation = CloudFormation("CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE")
    stack = stack_of(cloudformation)
    list(stack.delete())
    assert stack.name == "arn:stack/1"
    assert cloudformation.calls == [("delete_stack", {"StackName": "trainmaster"})]


def test_parameters_and_release_are_read_from_the_stack() -> None:
    described = {
        "Parameters": [{"ParameterKey": "A", "ParameterValue": "1"}, {"ParameterKey": "Gone", "ParameterValue": "2"}],
        "Tags": [{"Key": "trainmaster:version", "Value": "0.2.0"}],
    }
    assert kept_parameters(described, ["A", "New"]) == {"A": "1"}
    assert deployed_version(described) == "0.2.0"
    assert deployed_version({}) is None
