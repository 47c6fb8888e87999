"""The how-to page's examples that need no SDK; the others run in tests/e2e/sdk2 and tests/e2e/sdk3."""

import re
from collections.abc import Iterator

import pytest
from client_docs import HEADINGS, PAGE, example, run
from client_world import REGION, World, request_for

from trainmaster import ApiClient, route_to_queue


@pytest.fixture(autouse=True)
def environment(sagemaker_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", sagemaker_url)
    monkeypatch.setenv("TRAINMASTER_API_URL", f"{sagemaker_url}/prod")
    return


def test_every_example_is_run_somewhere() -> None:
    page = PAGE.read_text()
    assert page.count("```python") == len(HEADINGS)
    assert [heading for heading in re.findall(r"^## (.*)$", page, re.MULTILINE) if heading in HEADINGS] == [*HEADINGS]


def test_plain_boto3(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    variables = run(example("Plain boto3"))
    assert world.jobs["job1"]["priority"] == 100
    assert capsys.readouterr().out.startswith("Waiting in the queue; position 1; estimated start 2030-01-01")
    variables["sagemaker"].close()
    route_to_queue(variables["session"]).api.close()


def test_ask_before_you_submit(capsys: pytest.CaptureFixture[str]) -> None:
    with ApiClient() as queue:
        queue.submit(request_for("job1"))
    run(example("Ask before you submit"))
    assert capsys.readouterr().out == "1 job1 7 2030-01-01T12:00:00Z\n"
