"""A model server on the loopback, as the simulator asks it: `POST /<endpoint>/<variant>`; counts who is in at once.

What it answers is given; it must not know of images.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[str, Mapping[str, str], bytes], tuple[str, bytes]]
"""From the path, the headers and the body to a content type and an answer."""
_PATIENCE = 50.0
"""Maximum seconds for which a gate holds a request back; the caller has given up soon after."""


class ModelServer(ThreadingHTTPServer):
    """Answers by a function.

    Attributes:
        status: of its answers.
        asked: requests so far, by path.
        inside: requests that wait for their answer now, by path.
        most: the most of them at once, by path.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.status = 200
        self.asked: Counter[str] = Counter()
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self._shut: dict[str, threading.Event] = {}
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def shut(self, path: str) -> None:
        """Reservation back the answers of this path from now on."""
        self._shut[path] = threading.Event()

    def open(self, *paths: str) -> None:
        """Let all those go that are held back; without paths everywhere."""
        for path in paths or list(self._shut):
            self._shut.pop(path, threading.Event()).set()

    @contextmanager
    def request(self, path: str) -> Iterator[None]:
        """One request, counted while it is here."""
        with self._lock:
            self.asked[path] += 1
            self.inside[path] += 1
            self.most[path] = max(self.most[path], self.inside[path])
            gate = self._shut.get(path)
        try:
            if gate is not None:
                gate.wait(_PATIENCE)
            yield
        finally:
            with self._lock:
                self.inside[path] -= 1


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        # Counted until before it is answered: who has the answer is never counted beside the next.
        with self.server.request(self.path):
            kind, said = self.server.answer(self.path, self.headers, body)
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(said)))
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def model_server(answer: Answer) -> Iterator[ModelServer]:
    """A server, while it is used."""
    with ModelServer(answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.open()
            server.shutdown()
            thread.join()
