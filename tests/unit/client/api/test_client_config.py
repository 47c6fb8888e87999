"""Sources of the API's address."""

import json
import uuid

import boto3
import httpx
import pytest
from client_world import a_session

from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.config import Address, find_address
from trainmaster.client.api.errors import NotConfigured

URL = "https://vpce-1-x.execute-api.eu-west-1.vpce.amazonaws.com/prod"


def test_an_argument_goes_before_the_environment() -> None:
    environ = {"TRAINMASTER_API_URL": "https://other.example/prod", "TRAINMASTER_API_ID": "a1"}
    assert find_address(f"{URL}/", "b2", a_session(), environ) == Address(URL, "b2")
    assert find_address(None, None, a_session(), environ) == Address("https://other.example/prod", "a1")


def test_the_id_in_the_environment_belongs_to_the_address_there() -> None:
    environ = {"TRAINMASTER_API_URL": "https://other.example/prod", "TRAINMASTER_API_ID": "a1"}
    assert find_address(URL, None, a_session(), environ).api_id is None
    assert find_address(URL, None, a_session(), {"TRAINMASTER_API_ID": "a1"}).api_id == "a1"


@pytest.mark.parametrize(
    ("url", "region"),
    [
        (URL, "eu-west-1"),
        ("https://a1.execute-api.cn-north-1.amazonaws.com.cn/prod", "cn-north-1"),
        ("http://127.0.0.1:4566/x", None),
    ],
)
def test_the_host_name_tells_the_region(url: str, region: str | None) -> None:
    assert Address(url).region == region


@pytest.mark.parametrize(
    ("url", "region"), [(URL, "eu-west-1"), ("https://queue.example", "us-east-1"), (None, "us-east-1")]
)
def test_the_region_of_a_queue_is_known_without_a_call(url: str | None, region: str) -> None:
    """The stack `trainmaster` is in the session's Region."""
    assert ApiClient(url, session=a_session("us-east-1"), environ={}).region == region


@pytest.mark.parametrize("text", ["a1b2c3", "https://", "https:///prod", "https://host/pr od", "ftp://host/prod"])
def test_an_invalid_url_is_rejected(text: str) -> None:
    with pytest.raises(NotConfigured, match="https://"):
        find_address(text, None, a_session(), {})


def test_an_address_may_have_a_port_and_be_a_number() -> None:
    assert find_address("http://[::1]:4566/prod/", None, a_session(), {}).url == "http://[::1]:4566/prod"


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:4566/prod",
        "http://127.0.0.1/prod",
        "http://127.255.255.254:80/prod",
        "http://[::1]:4566/prod",
        "http://[0:0:0:0:0:0:0:1]/prod",
    ],
)
def test_http_is_accepted_for_this_machine(url: str) -> None:
    assert find_address(url, None, a_session(), {}) == Address(url)


CLEAR_TEXT = [
    "http://a1.execute-api.eu-west-1.amazonaws.com/prod",
    "http://10.0.0.5/prod",
    "http://0.0.0.0/prod",
    "http://128.0.0.1/prod",
    "http://127.0.0.1.example.com/prod",
    "http://localhost.example.com/prod",
    "http://127.1/prod",
    "http://[::2]/prod",
    "http://[fe80::1]/prod",
]


@pytest.mark.parametrize("url", CLEAR_TEXT)
def test_http_to_another_machine_is_refused_and_the_setting_is_named(url: str) -> None:
    with pytest.raises(NotConfigured, match=r"unencrypted.*--api-url.*https://"):
        find_address(url, None, a_session(), {"TRAINMASTER_API_URL": "https://other.example/prod"})
    with pytest.raises(NotConfigured, match=r"unencrypted.*TRAINMASTER_API_URL.*https://"):
        find_address(None, None, a_session(), {"TRAINMASTER_API_URL": url})


def test_http_in_the_output_of_a_stack_is_refused_and_the_stack_is_named(moto_session: boto3.session.Session) -> None:
    _deploy(moto_session, name := f"stack-{uuid.uuid4()}", {"ApiUrl": CLEAR_TEXT[0]})
    with pytest.raises(NotConfigured, match=rf"unencrypted.*ApiUrl of stack '{name}'"):
        find_address(None, None, moto_session, {"TRAINMASTER_STACK": name})


def test_the_client_refuses_http_to_another_machine_before_it_sends_anything() -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={})

    network = httpx.MockTransport(answer)
    with pytest.raises(NotConfigured, match="unencrypted"):
        ApiClient(CLEAR_TEXT[0], session=a_session(), transport=network, environ={}).pools()
    assert sent == []


def test_a_request_to_this_machine_takes_no_proxy(monkeypatch: pytest.MonkeyPatch, sagemaker_url: str) -> None:
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ApiClient(f"{sagemaker_url}/prod", session=a_session(), environ={}) as api:
        assert "pools" in api.pools()


def test_without_a_region_the_stack_cannot_be_asked_and_the_hint_says_where_to_name_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    session = boto3.session.Session(aws_access_key_id="test", aws_secret_access_key="test")
    with pytest.raises(NotConfigured, match=r"specify a region.* --region .* AWS_DEFAULT_REGION.*TRAINMASTER_API_URL"):
        find_address(None, None, session, {})


@pytest.fixture
def moto_session(moto: str, monkeypatch: pytest.MonkeyPatch) -> boto3.session.Session:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    return a_session()


def _deploy(session: boto3.session.Session, name: str, outputs: dict[str, str]) -> None:
    template = {
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {key: {"Value": value} for key, value in outputs.items()} or {"Other": {"Value": "x"}},
    }
    client = session.client("cloudformation")
    client.create_stack(StackName=name, TemplateBody=json.dumps(template))
    client.close()


def test_a_deployed_stack_tells_the_address_by_its_outputs(moto_session: boto3.session.Session) -> None:
    _deploy(moto_session, "trainmaster", {"ApiUrl": f"{URL}/", "ApiId": "c3"})
    _deploy(moto_session, name := f"stack-{uuid.uuid4()}", {"ApiUrl": "https://mine.example/prod"})

    assert find_address(None, None, moto_session, {}) == Address(URL, "c3")
    assert find_address(None, None, moto_session, {"TRAINMASTER_STACK": name}) == Address("https://mine.example/prod")


def test_a_stack_that_is_missing_or_another_says_how_to_name_it(moto_session: boto3.session.Session) -> None:
    with pytest.raises(NotConfigured, match=r"no-such-stack.*TRAINMASTER_API_URL"):
        find_address(None, None, moto_session, {"TRAINMASTER_STACK": "no-such-stack"})
    _deploy(moto_session, name := f"stack-{uuid.uuid4()}", {})
    with pytest.raises(NotConfigured, match=r"no output ApiUrl.*TRAINMASTER_STACK"):
        find_address(None, None, moto_session, {"TRAINMASTER_STACK": name})
