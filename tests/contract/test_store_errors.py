"""DynamoDB's refusals one by one, from a scripted client: what each becomes, and what is asked again."""

from __future__ import annotations

import random

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from trainmaster.adapters.dynamodb.control.schema import SCHEMA
from trainmaster.adapters.dynamodb.table import ABSENT, Guard, Table
from trainmaster.domain.errors import NotPermitted, Throttled, TooLarge, Unavailable

ROW = {"pk": {"S": "HELD"}, "sk": {"S": "job1"}, "version": {"N": "2"}, "schema": {"N": str(SCHEMA.version)}}
GUARD = Guard("version", 1)


def refusal(code, *, message="no", status=400, retries=0, reasons=None, item=None):
    answer = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "RetryAttempts": retries},
    }
    if reasons is not None:
        answer["CancellationReasons"] = [{"Code": reason} for reason in reasons]
    if item is not None:
        answer["Item"] = item
    return ClientError(answer, "Call")


def cancelled(*reasons, message="no"):
    return refusal("TransactionCanceledException", reasons=reasons, message=message)


class Scripted:
    """Answers every call with the next line of its script, and remembers what it was asked."""

    def __init__(self, *script):
        self.set_profile = list(script)
        self.asked = []

    def __getattr__(self, name):
        def call(**arguments):
            self.asked.append((name, arguments))
            answer = self.set_profile.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def table_on(*script):
    client, slept, tokens = Scripted(*script), [], iter("abcdefgh")
    table = Table(client, "t", slept.append, random.Random(1), lambda: next(tokens))
    return table, client, slept


def test_a_conflict_is_asked_again_as_another_transaction():
    table, client, slept = table_on(cancelled("None", "TransactionConflict"), cancelled("ThrottlingError"), {})
    assert table.commit([table.put_action(ROW)]) == frozenset()
    assert [arguments["ClientRequestToken"] for _, arguments in client.asked] == ["a", "b", "c"]
    assert len(slept) == 2


def test_a_transaction_still_under_way_is_asked_again_as_the_same():
    table, client, _ = table_on(refusal("TransactionInProgressException"), {})
    assert table.commit([table.put_action(ROW)]) == frozenset()
    assert [arguments["ClientRequestToken"] for _, arguments in client.asked] == ["a", "a"]


def test_guards_that_fail_are_told_by_number_even_beside_a_conflict():
    table, client, slept = table_on(cancelled("None", "ConditionalCheckFailed", "TransactionConflict"))
    assert table.commit([table.put_action(ROW)]) == {1}
    assert (len(client.asked), slept) == (1, [])


def test_conflicts_without_end_are_throttling_after_a_bounded_wait():
    table, client, slept = table_on(*[cancelled("TransactionConflict")] * 6)
    with pytest.raises(Throttled) as trouble:
        table.commit([table.put_action(ROW)])
    assert isinstance(trouble.value.__cause__, ClientError)
    assert len(client.asked) == 6
    assert len(slept) == 5
    assert 0 <= sum(slept) < 2


@pytest.mark.parametrize(
    ("item", "retries", "won"),
    [(ROW, 1, True), (ROW, 0, False), (ROW | {"version": {"N": "9"}}, 1, False), (None, 1, False)],
)
def test_a_guard_that_fails_on_our_own_row_after_a_lost_answer_is_a_win(item, retries, won):
    table, client, _ = table_on(refusal("ConditionalCheckFailedException", retries=retries, item=item))
    assert table.replace(ROW, GUARD) is won
    assert client.asked[0][1]["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"


def test_a_lost_answer_is_remembered_over_a_conflict():
    script = refusal("TransactionConflictException", retries=1), refusal("ConditionalCheckFailedException", item=ROW)
    assert table_on(*script)[0].replace(ROW, GUARD)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (refusal("ProvisionedThroughputExceededException"), Throttled),
        (refusal("ThrottlingException"), Throttled),
        (refusal("RequestLimitExceeded"), Throttled),
        (refusal("AccessDeniedException"), NotPermitted),
        (refusal("UnrecognizedClientException"), NotPermitted),
        (NoCredentialsError(), NotPermitted),
        (refusal("InternalServerError", status=500), Unavailable),
        (refusal("ServiceUnavailable", status=503), Unavailable),
        (refusal("ResourceNotFoundException"), Unavailable),
        (EndpointConnectionError(endpoint_url="http://x"), Unavailable),
        (refusal("ValidationException", message="Item size has exceeded the maximum allowed size"), TooLarge),
        (cancelled("ValidationError", message="Item size to update has exceeded the maximum allowed size"), TooLarge),
        (cancelled("ProvisionedThroughputExceeded", "None"), Throttled),
    ],
    ids=str,
)
def test_each_refusal_becomes_an_error_of_the_domain_with_its_cause(error, expected):
    table, _, _ = table_on(*[error] * 6)
    with pytest.raises(expected) as trouble:
        table.commit([table.put_action(ROW, ABSENT)])
    assert trouble.value.__cause__ is error


def test_botocores_own_patience_is_not_multiplied():
    table, client, slept = table_on(refusal("ThrottlingException", retries=2))
    with pytest.raises(Throttled):
        table.get(("HELD", "job1"))
    assert (len(client.asked), slept) == (1, [])


def test_rows_left_unread_are_asked_for_again():
    key = {"pk": {"S": "HELD"}, "sk": {"S": "job1"}}
    left = {"Responses": {}, "UnprocessedKeys": {"t": {"Keys": [key], "ConsistentRead": True}}}
    table, client, slept = table_on(left, {"Responses": {"t": [ROW]}, "UnprocessedKeys": {}})
    assert table.batch_get([("HELD", "job1")]) == [ROW]
    assert client.asked[0] == client.asked[1]
    assert len(slept) == 1
    with pytest.raises(Throttled):
        table_on(*[left] * 6)[0].batch_get([("HELD", "job1")])
