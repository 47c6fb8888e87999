"""A console over a fake API on a free port, and raw connections to it."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import httpx

from aws_clients import aws_session
from fake_api import STAGE, FakeApi
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.retry import Retry
from trainmaster.client.replay.process import ReplayProcess
from trainmaster.console.app import Console, Options
from trainmaster.console.feed import Feed
from trainmaster.console.identity import Identity
from trainmaster.console.replays import Replays

ARN = "arn:aws:sts::123456789012:assumed-role/ml/ada"


@dataclass
class Answer:
    """An answer as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    """A console that serves, and requests to it."""

    console: Console
    announced: list[str] = field(default_factory=list)
    cookie: str = ""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.console.port}"

    def raw(self, data: bytes, seconds: float = 10.0) -> bytes:
        """Send bytes on a connection of their own, and return all that comes back."""
        with socket.create_connection(("127.0.0.1", self.console.port), timeout=seconds) as connection:
            connection.sendall(data)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts)

    def ask(self, line: str, *, body: bytes = b"", host: str | None = None, **headers: str) -> Answer:
        """Send a request with the session's cookie; headers are given with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"Host": host or self.host, "Cookie": self.cookie} | named
        if body:
            given |= {"Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        return read(self.raw(f"{line} HTTP/1.1\r\n{head}\r\n".encode() + body))

    def change(self, line: str, body: Any = None, **headers: str) -> Answer:
        """Send a change as the page does."""
        content = b"" if body is None else json.dumps(body).encode()
        return self.ask(line, body=content, **{"X_Trainmaster_Console": "1", **headers})

    def stream(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield the events of a stream, until the server ends it."""
        with socket.create_connection(("127.0.0.1", self.console.port), timeout=10) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\nCookie: {self.cookie}\r\n\r\n".encode())
            for line in connection.makefile("rb"):
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    def sign_in(self) -> None:
        token = self.console.url.partition("?")[2]
        answer = self.ask(f"GET /?{token}")
        assert answer.status == 200
        self.cookie = answer.headers["set-cookie"].partition(";")[0]


def read(data: bytes) -> Answer:
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Answer(int(status.split()[1]), headers, body)


@contextmanager
def serving(
    world: FakeApi,
    options: Options | None = None,
    replay_process: Callable[[], ReplayProcess] = ReplayProcess,
    **faster: Any,
) -> Iterator[Running]:
    session = aws_session(aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="secret", region_name="us-east-1")
    retry = Retry(max_attempts=1, sleep=lambda _: None, rng=random.Random(1))
    transport: Any = httpx.WSGITransport(app=world)
    announced: list[str] = []
    with ApiClient(f"https://api{STAGE}", session=session, transport=transport, retry=retry, environ={}) as api:
        console = Console(
            api,
            options or Options(),
            on_sign_in=announced.append,
            identity=Identity(lambda: api.session, lambda _: ARN),
            feed=lambda read: Feed(read, **({"poll_seconds": 0.05, "quick_seconds": 0.02} | faster)),
            replays=Replays(api, process=replay_process),
        )
        thread = Thread(target=lambda: console.server.serve_forever(poll_interval=0.005), daemon=True)
        thread.start()
        try:
            yield Running(console, announced)
        finally:
            console.server.shutdown()
            console.close()
            thread.join(5)
