"""All jobs' images and models are asked for by one client: connections are shared, what servers had it keep is not."""

from __future__ import annotations

import http.server
import threading

import pytest

from trainmaster.images.pixels.http.http_parts import HttpParts
from trainmaster.images.pixels.http.range_file import BLOCK, Ranges
from trainmaster.images.pixels.http.url_policy import ImageLocation
from trainmaster.images.pixels.work.models import http_client

DATA = bytes(range(256)) * (6 * BLOCK // 256)


class Sticky(http.server.BaseHTTPRequestHandler):
    """Answers ranges, sets a cookie each time, and keeps who was connected and what cookies came."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        return

    def do_GET(self):
        self.server.asked.append((self.client_address, self.headers.get("Cookie")))
        first, last = (int(each) for each in self.headers["Range"].removeprefix("bytes=").split("-"))
        part = DATA[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(DATA)}")
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Set-Cookie", "session=of-the-first-job; Path=/")
        self.end_headers()
        self.wfile.write(part)


@pytest.fixture
def sticky():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sticky)
    server.asked, server.daemon_threads = [], True
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    with http_client(loopback=True) as server.client:
        yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ranges_of(sticky, name):
    place = ImageLocation(f"{sticky.url}/{name}.tif")
    return Ranges(HttpParts(sticky.client, place), place)


def test_cookies_are_not_shared_between_jobs(sticky):
    for name in ("first", "second"):
        assert ranges_of(sticky, name).read(0, 9) == DATA[:9]
    assert [cookie for _, cookie in sticky.asked] == [None, None]


def test_the_ranges_of_an_image_come_over_the_connection_that_is_there(sticky):
    ranges = ranges_of(sticky, "a")
    for number in range(6):
        assert ranges.read(number * BLOCK, 9) == DATA[number * BLOCK :][:9]
    assert (len(sticky.asked), len({address for address, _ in sticky.asked})) == (6, 1)
