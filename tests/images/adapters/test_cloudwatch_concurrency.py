"""CloudWatch's count of requests at endpoints: one call, the least of three minutes, and the meaning of its errors."""

from __future__ import annotations

from datetime import timedelta

import pytest
from moto import mock_aws

import builders as b
from aws_clients import aws_client, scripted
from trainmaster.domain.errors import NotPermitted, ServiceError, Throttled, Unavailable
from trainmaster.images.adapters.cloudwatch import CloudWatchConcurrency

NOW = b.at(30)
"""Half a minute after a whole one."""
BLUE, GREEN = ("ships", "blue"), ("444455556666:ships", "green")


@pytest.fixture
def client():
    with mock_aws():
        yield aws_client("cloudwatch")


def publish(client, variant, *values, name="ConcurrentRequestsPerModel", endpoint="ships"):
    """A figure in each of the last whole minutes, the newest last."""
    named = [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": variant}]
    first = b.at(0) - timedelta(minutes=len(values)) + timedelta(seconds=5)
    data = [
        {"MetricName": name, "Dimensions": named, "Timestamp": first + timedelta(minutes=number), "Value": value}
        for number, value in enumerate(values)
        if value is not None
    ]
    client.put_metric_data(Namespace="AWS/SageMaker", MetricData=data)


def test_w17_the_least_that_each_instance_had_in_three_minutes_is_told(client):
    publish(client, "blue", 1.0, 6.0, 4.0, 5.0)
    publish(client, "green", 9.0, 8.0, 7.0)
    publish(client, "blue", 0.0, 0.0, 0.0, name="Invocations")
    concurrency = CloudWatchConcurrency(lambda role: client)
    assert concurrency.min_requests([BLUE, GREEN, ("ships", "none")], NOW) == {BLUE: 4.0, GREEN: 7.0}


def test_the_last_minute_may_be_late_and_any_other_that_is_missing_had_no_requests(client):
    publish(client, "blue", 6.0, 4.0, None)
    publish(client, "green", 6.0, None, None)
    assert CloudWatchConcurrency(lambda role: client).min_requests([BLUE, GREEN], NOW) == {BLUE: 4.0}


def test_all_variants_are_asked_after_in_one_call_under_the_role():
    asked = []
    with scripted("cloudwatch") as script:
        script.add_response("get_metric_data", {"MetricDataResults": []})
        concurrency = CloudWatchConcurrency(lambda role: asked.append(role) or script.client)
        assert concurrency.min_requests([("e", f"v{number}") for number in range(100)], NOW, role="r") == {}
        assert concurrency.min_requests([], NOW) == {}
        script.assert_no_pending_responses()
    assert asked == ["r"]


@pytest.mark.parametrize(
    ("code", "kind"), [("AccessDenied", NotPermitted), ("Throttling", Throttled), ("InternalServiceFault", Unavailable)]
)
def test_troubles_are_told_apart(code, kind):
    with scripted("cloudwatch") as script:
        script.add_client_error("get_metric_data", code)
        with pytest.raises(ServiceError) as caught:
            CloudWatchConcurrency(lambda role: script.client).min_requests([BLUE], NOW)
    assert type(caught.value) is kind
