"""Endpoints of several accounts at the simulator: found and invoked under a role of their own account alone."""

from __future__ import annotations

import threading

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from model_server import model_server
from trainmaster.local.simulator.simulator import SageMakerSimulator
from trainmaster.local.simulator.wire.accounts import Accounts
from trainmaster.local.simulator.wire.invocations import Invocations
from trainmaster.local.simulator.wire.server import serve

OWN, OTHER, REGION = "000000000000", "333333333333", "us-east-1"
OF = {"ASIAOWNOWNOWNOWNOWN1": OWN, "ASIAOTHEROTHEROTHER1": OTHER}
"""The accounts of roles' sessions."""


class Sts:
    """Tells the accounts of keys, and counts how often it was asked."""

    def __init__(self):
        self.asked = []

    def get_access_key_info(self, AccessKeyId):  # noqa: N803 - STS's own name
        self.asked.append(AccessKeyId)
        return {"Account": OF[AccessKeyId]}


@pytest.fixture
def sts():
    return Sts()


@pytest.fixture
def client(sts):
    """A client under a key, of a simulator with one model server."""
    made = []
    with model_server(lambda path, headers, body: ("text/plain", path.encode())) as model, SageMakerSimulator() as one:
        server = serve(one, invocations=Invocations(model.url, REGION), accounts=Accounts(sts, OWN))
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()

        def client(service, key):
            keys = {"aws_access_key_id": key, "aws_secret_access_key": "x", "aws_session_token": "x"}
            once = Config(retries={"total_max_attempts": 1})
            url = f"http://127.0.0.1:{server.server_port}"
            made.append(boto3.client(service, endpoint_url=url, region_name=REGION, config=once, **keys))
            return made[-1]

        yield client
        for each in made:
            each.close()
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_endpoint_is_found_and_invoked_under_a_role_of_its_account_alone(client, sts):
    theirs, ours = "ASIAOTHEROTHEROTHER1", "ASIAOWNOWNOWNOWNOWN1"
    variant = {"VariantName": "v", "ModelName": "m", "InstanceType": "ml.m5.xlarge", "InitialInstanceCount": 1}
    sagemaker = client("sagemaker", theirs)
    sagemaker.create_model(ModelName="m", ExecutionRoleArn=f"arn:aws:iam::{OTHER}:role/x", PrimaryContainer={})
    sagemaker.create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant])
    tags = [{"Key": "osml:instance-concurrency", "Value": "4"}]
    sagemaker.create_endpoint(EndpointName="shared", EndpointConfigName="c", Tags=tags)

    found = sagemaker.describe_endpoint(EndpointName="shared")["EndpointArn"]
    assert f":{OTHER}:" in found
    assert sagemaker.list_tags(ResourceArn=found)["Tags"] == tags
    assert client("sagemaker-runtime", theirs).invoke_endpoint(EndpointName="shared", Body=b"x")["Body"].read()
    for key in (ours, OWN):
        with pytest.raises(ClientError, match="Could not find endpoint"):
            client("sagemaker", key).describe_endpoint(EndpointName="shared")
        with pytest.raises(ClientError, match="Could not find endpoint"):
            client("sagemaker-runtime", key).invoke_endpoint(EndpointName="shared", Body=b"x")
    assert sorted(sts.asked) == sorted(OF), "each key once, and plain keys never"
