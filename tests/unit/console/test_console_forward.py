"""The feed's reads ask whether an answer still holds, so that a poll of an unchanged queue is cheap."""

from __future__ import annotations

import httpx
import pytest

from aws_clients import aws_session
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.errors import Unreachable
from trainmaster.client.api.retry import Retry
from trainmaster.console.forward import Forwarder
from trainmaster.console.routes import Read


class Api:
    """Answers with a version as ETag, and with 304 to one who has it."""

    def __init__(self):
        self.version, self.tagged, self.fails = 1, True, False
        self.asked = []
        session = aws_session(aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="secret", region_name="us-east-1")
        transport = httpx.MockTransport(self.answer)
        client = ApiClient(
            "https://api.example/prod", session=session, transport=transport, retry=Retry(max_attempts=1), environ={}
        )
        self.forwarder = Forwarder(client)

    def answer(self, request):
        self.asked.append(request.headers.get("if-none-match"))
        if self.fails:
            return httpx.Response(503, json={"error": {"type": "Unavailable", "message": "x"}})
        tag = {"ETag": f'"{self.version}"'} if self.tagged else {}
        if tag and self.asked[-1] == tag["ETag"]:
            return httpx.Response(304, headers=tag)
        return httpx.Response(200, headers=tag, json={"jobs": [], "version": self.version})

    def read(self, name="queue"):
        return self.forwarder.read(Read((name,), ()))


@pytest.fixture
def api():
    return Api()


def test_an_answer_that_still_holds_is_the_same_object(api):
    first = api.read()
    assert api.read() is first
    api.version = 2
    assert api.read()["version"] == 2
    assert api.asked == [None, '"1"', '"1"']


def test_each_read_has_its_own_tag(api):
    api.read("queue")
    api.read("pools")
    assert api.asked == [None, None]


def test_an_answer_without_a_tag_is_read_again(api):
    api.tagged = False
    assert api.read() is not api.read()
    assert api.asked == [None, None]


def test_after_an_error_the_whole_answer_is_read(api):
    api.read()
    api.fails = True
    with pytest.raises(Unreachable):
        api.read()
    api.fails = False
    assert api.read() == {"jobs": [], "version": 1}
    assert api.asked == [None, '"1"', None]


def test_answers_that_are_no_longer_read_are_forgotten(api):
    for number in range(100):
        api.read(f"read{number}")
    api.read("read99")
    api.read("read0")
    assert api.asked[-2:] == ['"1"', None]
