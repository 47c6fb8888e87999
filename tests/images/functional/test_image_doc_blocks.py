"""The blocks of docs/how-to/image-jobs.md run: its request is accepted, and its commands succeed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from cli_terminal import Terminal
from doc_blocks import Block, blocks, commands
from fake_api import STAGE
from image_api_world import ImageApiWorld
from image_fake_api import ImageFakeApi, an_image
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.retry import Retry

HERE = "tests/images/functional/test_image_doc_blocks.py"
BLOCKS = [block for block in blocks() if block.reason == HERE]


def of(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


def test_all_blocks_are_of_the_languages_that_run_here():
    assert {block.language for block in BLOCKS} == {"sh", "json"}


@pytest.mark.parametrize("block", of("json"), ids=str)
def test_a_request_is_accepted(block):
    assert ImageApiWorld().post("/image-jobs", json.loads(block.text)).status == 202


@pytest.mark.parametrize("block", of("sh"), ids=str)
def test_the_commands_of_a_block_succeed(block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (request,) = of("json")
    (tmp_path / "harbour-7.json").write_text(request.text)
    world = ImageFakeApi()
    session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    retry = Retry(max_attempts=3, sleep=lambda _: None, rng=random.Random(1))
    transport: Any = httpx.WSGITransport(app=world)
    with ApiClient(f"https://api{STAGE}", session=session, transport=transport, retry=retry, environ={}) as api:
        terminal = Terminal(api, meanwhile=[lambda: ended(world)] * 2)
        if "submit" not in block.text:
            ended(world)
        for program, *arguments in commands(block):
            assert program == "trainmaster"
            assert terminal(*arguments).exit_code == 0, arguments


def ended(world: ImageFakeApi) -> None:
    world.add("harbour-7", "completed", **an_image(done=30))
