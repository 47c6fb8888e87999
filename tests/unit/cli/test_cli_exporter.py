"""`trainmaster exporter` as a program: it is scraped over HTTP, Ctrl-C ends it, and mistakes are told in one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from cli_terminal import Terminal
from fake_api import FakeApi, served
from trainmaster.client.api.client import ApiClient

URL = re.compile(r"http://127\.0\.0\.1:(\d+)/metrics")


@contextmanager
def running(api_url: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    environ = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "TRAINMASTER_API_URL": api_url,
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", "trainmaster", "exporter", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def api_url() -> Iterator[str]:
    with served(FakeApi()) as url:
        yield url


def test_it_is_scraped_until_ctrl_c_and_a_port_in_use_is_one_line(api_url):
    with running(api_url, "--port", "0") as process:
        assert process.stdout is not None
        address = URL.search(process.stdout.readline())
        assert address is not None
        scraped = httpx.get(address[0], trust_env=False)
        assert "trainmaster_up 1.0" in scraped.text
        assert "# TYPE trainmaster_pool_cap gauge" in scraped.text
        with running(api_url, "--port", address[1]) as second:
            _, err = second.communicate(timeout=20)
            assert second.returncode not in (0, None)
            assert f"127.0.0.1:{address[1]} cannot be used" in err
            assert "Traceback" not in err
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (0, "")
        assert out.endswith("The exporter has ended.\n")


def test_a_missing_package_is_named_with_the_extra_that_has_it(client):
    result = Terminal(client, missing={"prometheus_client"})("exporter")
    assert result.exit_code != 0
    assert 'pip install "trainmaster[exporter]"' in result.stderr


def test_the_board_is_printed_without_the_package_and_without_an_api():
    alone = Terminal(ApiClient("https://nowhere.example/prod", environ={}), missing={"prometheus_client"})
    assert json.loads(alone("exporter", "--board").stdout)["uid"] == "trainmaster"
