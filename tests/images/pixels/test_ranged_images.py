"""Images behind HTTP are read by our own client, range by range: nothing that a server answers leads elsewhere."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from imaging_stage import written

from spots import geotiff
from trainmaster.domain.errors import InvalidRequest, Throttled, Unavailable
from trainmaster.images.domain.tiling import Window
from trainmaster.images.pixels.http.http_parts import HttpParts
from trainmaster.images.pixels.http.range_file import BLOCK, Ranges
from trainmaster.images.pixels.http.url_policy import ImageLocation, image_location
from trainmaster.images.pixels.reading.windows import Image

URL = "http://images.example/a.tif?token=s3cr3t"
DATA = np.random.default_rng(2).integers(0, 255, 10 * BLOCK + 77, dtype="uint8").tobytes()
NOISE = np.random.default_rng(1).integers(0, 255, (3, 1024, 1024), dtype="uint8")
SIDE = 256
WINDOWS = [Window(row, column, SIDE, SIDE) for row in range(0, 1024, SIDE) for column in range(0, 1024, SIDE)]


def image_at(imaging, url):
    return Image(imaging._access, image_location(url, loopback=True), None)


@pytest.mark.parametrize("driver", ["GTiff", "NITF", "JPEG", "PNG", "JP2OpenJPEG"])
def test_a_server_that_leads_elsewhere_at_any_request_of_a_read_is_not_followed(imaging, web, tmp_path, driver):
    """The first answers may be good: GDAL itself went wherever the later ones led, also to Lambda's own interface."""
    web.files["a"] = web.files["inner"] = written(tmp_path / "a.jp2", NOISE[:, :SIDE, :SIDE], driver)
    for good in range(99):
        web.asked.clear()
        web.leads.clear()
        web.before = lambda number, good=good: web.leads.update({"a": f"{web.url}/inner"} if number >= good else {})
        told = refusal(imaging, f"{web.url}/a")
        assert {path for _, path, _ in web.asked} == {"/a"}
        if told is None:
            break
        assert "redirects to another address" in str(told)
        assert told.field == "imageUrls"
    assert 2 <= good < 98


def refusal(imaging, url):
    """Reason for which an image cannot be read; None if it can."""
    try:
        image = image_at(imaging, url)
        try:
            image.read(Window(0, 0, SIDE, SIDE))
        finally:
            image.close()
    except InvalidRequest as error:
        return error
    return None


def test_the_header_and_a_region_are_read_with_few_requests_and_hardly_a_byte_too_many(imaging, web):
    web.files["a.tif"] = geotiff(NOISE, tiled=True, blockxsize=SIDE, blockysize=SIDE, interleave="pixel")
    imaging.headers.read(f"{web.url}/a.tif")
    assert [(method, size) for method, _, size in web.asked] == [("GET", BLOCK)]
    web.asked.clear()
    image = image_at(imaging, f"{web.url}/a.tif")
    image.read(Window(0, 0, 2 * SIDE, 2 * SIDE))
    image.close()
    assert len(web.asked) <= 6
    assert sum(size for _, _, size in web.asked) <= 2 * 4 * SIDE * SIDE * 3


def test_threads_share_what_is_read_and_see_the_same_pixels(imaging, web):
    web.files["a.tif"] = geotiff(NOISE, tiled=True, blockxsize=SIDE, blockysize=SIDE, interleave="pixel")
    image = image_at(imaging, f"{web.url}/a.tif")
    with ThreadPoolExecutor(6) as pool:
        chips = list(pool.map(image.read, WINDOWS))
    image.close()
    for window, chip in zip(WINDOWS, chips, strict=True):
        there = NOISE[:, window.row : window.row + SIDE, window.column : window.column + SIDE]
        assert (chip.pixels == there).all()
    assert sum(size for _, _, size in web.asked) == len(web.files["a.tif"])


def test_an_image_that_one_thread_opens_another_reads_and_a_third_closes(imaging, web):
    web.files["a.tif"] = geotiff(NOISE)
    with ThreadPoolExecutor(1) as opens, ThreadPoolExecutor(1) as reads, ThreadPoolExecutor(1) as closes:
        image = opens.submit(image_at, imaging, f"{web.url}/a.tif").result()
        assert (reads.submit(image.read, WINDOWS[0]).result().pixels == NOISE[:, :SIDE, :SIDE]).all()
        closes.submit(image.close).result()


def test_a_handle_that_has_met_trouble_is_not_used_again(imaging, web):
    web.files["a.tif"] = geotiff(NOISE, tiled=True, blockxsize=SIDE, blockysize=SIDE, interleave="pixel")
    image = image_at(imaging, f"{web.url}/a.tif")
    held, web.files["a.tif"] = web.files["a.tif"], 404
    with pytest.raises(InvalidRequest, match="HTTP status 404"):
        image.read(WINDOWS[5])
    web.files["a.tif"] = held
    there = NOISE[:, SIDE : 2 * SIDE, SIDE : 2 * SIDE]
    assert (image.read(WINDOWS[5]).pixels == there).all()
    image.close()


class Server:
    """Answers as a list of changes says, the last of them for good; keeps which ranges it was asked for."""

    def __init__(self, *answers, data=DATA):
        self.answers = list(answers)
        self.data = data
        self.asked = []
        self.waited = []
        self.lock = threading.Lock()

    def handle(self, request):
        with self.lock:
            first, last = (int(each) for each in request.headers["Range"].removeprefix("bytes=").split("-"))
            self.asked.append((first, last + 1 - first))
            answer = (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]) if self.answers else {}
        part = self.data[first : last + 1]
        headers = {"Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(self.data)}"}
        given = {"status_code": 206, "content": lambda: iter([part])} | answer
        given["content"] = given["content"]()
        given["headers"] = headers | given.get("headers", {})
        return httpx.Response(**given)

    def ranges(self, *, now=time.monotonic, handle=None, **given):
        client = httpx.Client(transport=httpx.MockTransport(handle or self.handle))
        place = ImageLocation(URL)
        return Ranges(HttpParts(client, place, now=now), place, wait=self.waited.append, **given)


def test_bytes_are_asked_for_by_blocks_and_once():
    server = Server()
    ranges = server.ranges()
    assert ranges.size == len(DATA)
    for start, length in ((0, 5), (BLOCK - 3, 9), (3 * BLOCK, 4 * BLOCK), (2 * BLOCK, BLOCK * 2), (len(DATA) - 4, 99)):
        assert ranges.read(start, length) == DATA[start : start + length]
    assert server.asked == [(0, BLOCK), (BLOCK, BLOCK), (3 * BLOCK, 4 * BLOCK), (2 * BLOCK, BLOCK), (10 * BLOCK, BLOCK)]
    assert ranges.read(len(DATA), 9) == ranges.read(len(DATA) + 9, 9) == b""


def test_sequential_reads_read_ahead_more_and_more():
    server = Server()
    file = server.ranges().open()
    assert b"".join(iter(lambda: file.read(4096), b"")) == DATA
    assert [size // BLOCK for _, size in server.asked] == [1, 2, 4, 4]


def test_a_block_that_another_thread_asks_for_is_waited_for():
    server, entered, let = Server(), threading.Event(), threading.Event()

    def slow(request):
        answer = server.handle(request)
        if len(server.asked) > 1:
            entered.set()
            assert let.wait(10)
        return answer

    ranges = server.ranges(handle=slow)
    assert ranges.size
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ranges.read, BLOCK, 10)
        assert entered.wait(10)
        second = pool.submit(ranges.read, BLOCK + 10, 10)
        let.set()
        assert first.result() + second.result() == DATA[BLOCK : BLOCK + 20]
    assert server.asked == [(0, BLOCK), (BLOCK, BLOCK)]


@pytest.mark.parametrize(
    ("status", "error", "tries"),
    [
        (429, Throttled, 4),
        (503, Unavailable, 4),
        (408, Unavailable, 4),
        (403, InvalidRequest, 1),
        (416, InvalidRequest, 1),
    ],
)
def test_trouble_that_may_pass_is_asked_again_and_told_from_what_stays(status, error, tries):
    server = Server({"status_code": status})
    ranges = server.ranges()
    with pytest.raises(error, match=f"HTTP status {status}") as caught:
        ranges.read(0, 9)
    assert len(server.asked) == tries
    assert "s3cr3t" not in str(caught.value)
    server.answers = []
    assert ranges.read(0, 9) == DATA[:9]


def test_trouble_that_passes_is_not_told():
    server = Server({"status_code": 503}, {"status_code": 429}, {})
    assert server.ranges().read(0, 9) == DATA[:9]
    assert server.waited == [0.2, 0.4]


def endless(taken):
    """A body that is written down as far as it is taken."""
    while True:
        taken.append(BLOCK)
        yield bytes(BLOCK)


def test_a_server_that_has_only_the_whole_is_refused_and_the_whole_is_not_read():
    taken = []
    server = Server({"status_code": 200, "content": lambda: endless(taken)})
    with pytest.raises(InvalidRequest, match="does not support byte ranges") as caught:
        server.ranges().read(0, 9)
    assert caught.value.field == "imageUrls"
    assert len(taken) <= 1


@pytest.mark.parametrize(
    "answer",
    [
        {"headers": {"Content-Range": ""}},
        {"headers": {"Content-Range": f"bytes 0-{BLOCK - 1}/*"}},
        {"headers": {"Content-Range": f"bytes 1-{BLOCK}/{len(DATA)}"}},
        {"headers": {"Content-Range": f"bytes 0-99/{len(DATA)}"}},
        {"headers": {"Content-Range": f"bytes 0-{BLOCK - 1}/{2**62}"}},
        {"headers": {"Content-Encoding": "gzip"}},
        {"status_code": 204},
    ],
)
def test_ranges_that_are_none_or_others_are_refused(answer):
    with pytest.raises(InvalidRequest, match="ranges"):
        Server(answer).ranges().read(0, 9)


def test_an_answer_that_ends_too_early_may_pass_and_one_that_goes_on_is_cut():
    taken = []
    with pytest.raises(Unavailable, match="ends too early"):
        Server({"content": lambda: iter([b"abc"])}).ranges().read(0, 9)
    assert Server({"content": lambda: endless(taken)}).ranges().read(0, 9) == bytes(9)
    assert len(taken) == 1


def test_an_answer_that_comes_drop_by_drop_is_given_up():
    clock = iter(range(10_000))
    server = Server({"content": lambda: (b"a" for _ in range(BLOCK))})
    with pytest.raises(Unavailable, match="60 seconds"):
        server.ranges(now=lambda: next(clock)).read(0, 9)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({"ETag": '"a"'}, {"ETag": '"b"'}, True),
        ({"ETag": '"a"', "Last-Modified": "yesterday"}, {"ETag": '"a"', "Last-Modified": "today"}, False),
        ({"Last-Modified": "yesterday"}, {"Last-Modified": "today"}, True),
        ({"ETag": 'W/"a"'}, {"ETag": 'W/"b"'}, False),
        ({"ETag": '"a"', "Last-Modified": "today"}, {"ETag": 'W/"a"', "Last-Modified": "today"}, False),
        ({"ETag": 'W/"a"', "Last-Modified": "today"}, {"ETag": '"a"'}, False),
        ({"ETag": '"a"'}, {}, False),
        ({"ETag": '"a"', "Last-Modified": "yesterday"}, {"ETag": 'W/"a"', "Last-Modified": "today"}, True),
        ({}, {"Content-Range": f"bytes {5 * BLOCK}-{6 * BLOCK - 1}/{len(DATA) + 1}"}, True),
    ],
)
def test_an_image_that_changes_while_it_is_read_is_refused(before, after, changed):
    ranges = Server({"headers": before}, {"headers": after}).ranges()
    ranges.read(0, 9)
    if not changed:
        assert ranges.read(5 * BLOCK, 9) == DATA[5 * BLOCK :][:9]
        return
    with pytest.raises(InvalidRequest, match="has changed"):
        ranges.read(5 * BLOCK, 9)


def test_a_later_response_completes_the_version_of_an_image():
    ranges = Server({}, {"headers": {"ETag": '"a"'}}, {}, {"headers": {"ETag": '"b"'}}).ranges()
    for number in (0, 2, 4):
        ranges.read(number * BLOCK, 9)
    with pytest.raises(InvalidRequest, match="has changed"):
        ranges.read(6 * BLOCK, 9)


def test_a_lost_connection_may_pass_and_an_address_that_is_none_stays():
    def lost(request):
        raise httpx.ReadError(f"of {request.url}")

    ranges = Server().ranges(handle=lost)
    with pytest.raises(Unavailable, match="ReadError") as caught:
        ranges.read(0, 9)
    assert "s3cr3t" not in str(caught.value)
    place = ImageLocation("http://images.example:port/a.tif")
    with httpx.Client() as client, pytest.raises(InvalidRequest, match="not a URL"):
        Ranges(HttpParts(client, place), place).read(0, 9)


def test_more_than_any_block_has_is_not_read():
    server = Server()
    with pytest.raises(InvalidRequest, match="parts of more than"):
        server.ranges().read(0, 2**30)
    assert server.asked == []


def test_the_least_recently_used_entry_is_evicted_first():
    server = Server()
    ranges = server.ranges(kept=3 * BLOCK)
    for number in (0, 1, 2, 0, 3, 0, 1):
        ranges.read(number * BLOCK, 9)
    assert [start // BLOCK for start, _ in server.asked] == [0, 1, 2, 3, 1]
