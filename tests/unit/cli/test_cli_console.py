"""`trainmaster console` as a program: its address signs in, Ctrl-C ends it, and mistakes are told in one line."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from fake_api import FakeApi, served

URL = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=\S+")


@contextmanager
def running(api_url: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    environ = os.environ | {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": api_url,
        "TRAINMASTER_API_URL": api_url,
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", "trainmaster", "console", "--no-browser", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def api_url() -> Iterator[str]:
    world = FakeApi()
    world.add("job1", "pending", 5)
    with served(world) as url:
        yield url


def test_the_printed_address_signs_a_browser_in_and_ctrl_c_ends_it(api_url):
    with running(api_url) as process, httpx.Client(trust_env=False) as browser:
        assert process.stdout is not None
        address = URL.search(process.stdout.readline())
        assert address is not None
        assert f"ssh -L {address[1]}:127.0.0.1:{address[1]}" in process.stdout.readline()
        assert browser.get(address[0]).status_code == 200
        base = f"http://127.0.0.1:{address[1]}"
        assert browser.get(f"{base}/api/queue").json()["jobs"][0]["jobName"] == "job1"
        assert httpx.get(f"{base}/api/queue", trust_env=False).status_code == 403
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 0
        assert err == ""
        following = URL.search(out)
        assert following is not None
        assert following[0] != address[0]
        assert out.endswith("The console has ended.\n")


def test_a_port_in_use_is_one_line(api_url):
    with running(api_url) as process:
        assert process.stdout is not None
        address = URL.search(process.stdout.readline())
        assert address is not None
        with running(api_url, "--port", address[1]) as second:
            _, err = second.communicate(timeout=20)
            assert second.returncode not in (0, None)
            assert f"Port {address[1]} cannot be used" in err
            assert "Traceback" not in err


def test_a_wrong_address_is_told_before_a_page_opens():
    with running("http://elsewhere.example/prod") as process:
        out, err = process.communicate(timeout=20)
        assert process.returncode not in (0, None)
        assert out == ""
        assert "unencrypted" in err
