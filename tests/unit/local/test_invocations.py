"""InvokeEndpoint of the simulator, over HTTP, by a real boto3 client and a real model server."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from aws_clients import aws_client
from model_server import model_server
from trainmaster.local.simulator.simulator import SageMakerSimulator
from trainmaster.local.simulator.wire.invocations import Invocations
from trainmaster.local.simulator.wire.server import serve

ACCOUNT, REGION = "000000000000", "us-east-1"
"""The account of the local stack, which is not moto's own."""
AT_ONCE = 3
MADE = []
"""Clients of the test that runs: sockets that they leave open are an error in whichever test comes next."""


def as_asked(path, headers, body):
    """An answer that says who was asked, and for what."""
    return "text/plain", f"{path} {headers['Content-Type']} ".encode() + body


@pytest.fixture
def model():
    with model_server(as_asked) as server:
        yield server


@pytest.fixture
def served(model):
    invocations = Invocations(model.url, REGION, per_instance=1)
    with SageMakerSimulator() as simulator:
        server = serve(simulator, invocations=invocations)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", invocations
        while MADE:
            MADE.pop().close()
        server.shutdown()
        thread.join()
        server.server_close()


def client(service, url):
    once = Config(retries={"total_max_attempts": 1}, max_pool_connections=20)
    keys = {"aws_access_key_id": ACCOUNT, "aws_secret_access_key": "x"}
    MADE.append(aws_client(service, endpoint_url=url, config=once, **keys))
    return MADE[-1]


def endpoint(url, name, *variants):
    sagemaker = client("sagemaker", url)
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=f"arn:aws:iam::{ACCOUNT}:role/x", PrimaryContainer={})
    described = [{"ModelName": name, **variant} for variant in variants]
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=described)
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    return client("sagemaker-runtime", url)


def on_instances(name, weight=1.0, count=1):
    instances = {"InstanceType": "ml.m5.xlarge", "InitialInstanceCount": count}
    return {"VariantName": name, "InitialVariantWeight": weight, **instances}


def serverless(name, most):
    return {"VariantName": name, "ServerlessConfig": {"MemorySizeInMB": 2048, "MaxConcurrency": most}}


def test_an_invocation_reaches_the_model_as_its_variant(served, model):
    runtime = endpoint(served[0], "cats", on_instances("blue"))
    answer = runtime.invoke_endpoint(EndpointName="cats", ContentType="image/png", Body=b"tile")
    assert answer["Body"].read() == b"/cats/blue image/png tile"
    assert answer["InvokedProductionVariant"] == "blue"


def test_a_variant_that_is_named_is_taken_and_others_by_weight(served, model):
    runtime = endpoint(served[0], "two", on_instances("heavy", 0.7), on_instances("light", 0.3))
    for _ in range(10):
        runtime.invoke_endpoint(EndpointName="two", TargetVariant="light", Body=b"x")["Body"].close()
    assert model.asked == {"/two/light": 10}
    for _ in range(200):
        runtime.invoke_endpoint(EndpointName="two", Body=b"x")["Body"].close()
    assert 100 <= model.asked["/two/heavy"] <= 175


@pytest.mark.parametrize(("asked", "code"), [({"TargetVariant": "green"}, "ValidationError"), ({}, "ModelError")])
def test_errors_have_the_services_form(served, model, asked, code):
    runtime = endpoint(served[0], "bad", on_instances("blue"))
    model.status = 500
    with pytest.raises(ClientError) as caught:
        runtime.invoke_endpoint(EndpointName="bad", Body=b"x", **asked)
    assert caught.value.response["Error"]["Code"] == code


def test_an_endpoint_that_is_not_there_is_refused(served):
    with pytest.raises(ClientError) as caught:
        client("sagemaker-runtime", served[0]).invoke_endpoint(EndpointName="none", Body=b"x")
    assert caught.value.response["Error"]["Code"] == "ValidationError"


@pytest.mark.parametrize("variant", [serverless("only", AT_ONCE), on_instances("only", count=AT_ONCE)])
def test_a_variant_that_is_full_throttles_and_the_most_at_once_is_counted(served, model, variant):
    runtime = endpoint(served[0], "full", variant)
    model.shut("/full/only")
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = [threads.submit(runtime.invoke_endpoint, EndpointName="full", Body=b"x") for _ in range(AT_ONCE)]
        while model.asked["/full/only"] < AT_ONCE:
            threading.Event().wait(0.01)
        with pytest.raises(ClientError) as caught:
            runtime.invoke_endpoint(EndpointName="full", Body=b"x")
        model.open()
        assert {answer.result()["Body"].read() for answer in answers} == {b"/full/only None x"}
    assert caught.value.response["Error"]["Code"] == "ThrottlingException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429
    assert served[1].max_concurrent() == {"full/only": AT_ONCE}
    assert model.most == {"/full/only": AT_ONCE}
