"""The example for boto3 of docs/how-to/coming-from-aws-batch.md, run as it stands but for the role."""

import boto3
import pytest
from client_docs import blocks, run
from client_world import REGION

from fake_api import ROLE, FakeApi, served
from trainmaster.client.batch.hook import unroute_batch


def test_the_example_for_boto3(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = [code for code in blocks("docs/how-to/coming-from-aws-batch.md") if "submit_service_job" in code]
    with served(fake) as url:
        monkeypatch.setenv("TRAINMASTER_API_URL", url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
        boto3.setup_default_session()
        run(code.replace("arn:aws:iam::111122223333:role/training", ROLE))
        unroute_batch()
    assert capsys.readouterr().out.startswith("RUNNABLE Waiting in the queue; position 1;")
    assert fake.jobs["train-1"]["priority"] == 5
