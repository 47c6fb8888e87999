"""Names are looked up when a connection is made, and the addresses that were checked are those connected to."""

from __future__ import annotations

from contextlib import closing

import httpcore
import httpx
import pytest
from botocore.config import Config

from aws_clients import aws_session
from spots import geotiff, picture
from trainmaster.adapters.clock import SystemClock
from trainmaster.adapters.sts import Roles
from trainmaster.domain.errors import InvalidRequest, Unavailable
from trainmaster.images.pixels.http.connection import PublicOnly
from trainmaster.images.pixels.reading.access import Access
from trainmaster.images.pixels.reading.headers import RasterHeaders
from trainmaster.images.pixels.role_clients import RoleClients
from trainmaster.images.pixels.wiring import Imaging
from trainmaster.images.pixels.work.models import HttpModel, http_client

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class Wires(httpcore.NetworkBackend):
    """A network that keeps who was connected to and what was said; some addresses are not reached."""

    def __init__(self, dead=()):
        self.dead = dead
        self.to = []
        self.said = b""
        self.names = []

    def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):
        self.to.append((host, port))
        if host in self.dead:
            raise httpcore.ConnectError("no route")
        return Wire(self)


class Wire(httpcore.MockStream):
    def __init__(self, wires):
        super().__init__([ANSWER])
        self.wires = wires

    def write(self, buffer, timeout=None):
        self.wires.said += buffer

    def start_tls(self, ssl_context, server_hostname=None, timeout=None):
        assert ssl_context.check_hostname
        self.wires.names.append(server_hostname)
        return self


def client_of(wires, *found):
    """A client, and the hosts that it has asked for."""
    hosts = []

    def resolve(host):
        hosts.append(host)
        return found

    return httpx.Client(transport=PublicOnly(httpx.Limits(), resolve=resolve, backend=wires)), hosts


def test_a_host_is_looked_up_once_and_connected_to_where_it_was_found_under_its_own_name():
    wires = Wires()
    client, hosts = client_of(wires, "8.8.8.8")
    assert client.get("https://images.example/a.tif").text == "hi"
    assert (hosts, wires.to, wires.names) == (["images.example"], [("8.8.8.8", 443)], ["images.example"])
    assert b"\r\nHost: images.example\r\n" in wires.said


def test_where_one_address_is_not_reached_the_next_is():
    wires = Wires(dead=("2a00:1450:4001::1",))
    client, hosts = client_of(wires, "2a00:1450:4001::1", "8.8.8.8")
    assert client.get("http://images.example:8080/").text == "hi"
    assert (len(hosts), wires.to) == (1, [("2a00:1450:4001::1", 8080), ("8.8.8.8", 8080)])
    client, _ = client_of(Wires(dead=("8.8.8.8", "8.8.4.4")), "8.8.8.8", "8.8.4.4")
    with pytest.raises(httpx.ConnectError):
        client.get("http://images.example/")


class Slow(Wires):
    """A network on which time passes: some addresses answer nothing, the others a piece at each read."""

    def __init__(self, *pieces, dead=(), each=0.0):
        super().__init__(dead)
        self.pieces, self.each, self.time = pieces, each, 0.0

    def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):
        self.to.append(host)
        if host in self.dead:
            self.time += timeout
            raise httpcore.ConnectTimeout("no answer")
        return SlowWire(self)

    def client(self, *found):
        transport = PublicOnly(httpx.Limits(), resolve=lambda _: found, backend=self, now=lambda: self.time)
        return httpx.Client(transport=transport, timeout=httpx.Timeout(60, connect=5))


class SlowWire(httpcore.MockStream):
    def __init__(self, wires):
        super().__init__(list(wires.pieces))
        self.wires = wires

    def read(self, max_bytes, timeout=None):
        if timeout < self.wires.each:
            self.wires.time += timeout
            raise httpcore.ReadTimeout("no byte came")
        self.wires.time += self.wires.each
        return super().read(max_bytes)


def test_however_many_addresses_a_host_has_they_share_the_time_for_connecting():
    dead = [f"8.8.{number // 200}.{number % 200}" for number in range(400)]
    wires = Slow(dead=dead)
    with wires.client(*dead) as client, pytest.raises(httpx.ConnectTimeout):
        client.get("http://images.example/")
    assert len(wires.to) == 3
    assert wires.time == pytest.approx(5)
    wires = Slow(ANSWER, dead=dead[:2])
    with wires.client(*dead[:2], "9.9.9.9") as client:
        assert client.get("https://images.example/").text == "hi"


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("said", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"])
def test_an_answer_whose_bytes_come_one_by_one_has_a_minute_in_all(scheme, said):
    wires = Slow(said, *[b"a"] * 500, each=7.0)
    with wires.client("8.8.8.8") as client, pytest.raises(httpx.ReadTimeout):
        client.get(f"{scheme}://images.example/")
    assert wires.time == pytest.approx(60)


def test_each_answer_over_a_connection_that_is_kept_has_a_minute():
    wires = Slow(ANSWER[:30], ANSWER[30:], ANSWER[:30], ANSWER[30:], each=20.0)
    with wires.client("8.8.8.8") as client:
        assert [client.get("https://images.example/").text for _ in range(2)] == ["hi", "hi"]
    assert (wires.to, wires.time) == (["8.8.8.8"], 80.0)


@pytest.mark.parametrize("found", [("127.0.0.1",), ("8.8.8.8", "169.254.169.254"), ()])
def test_a_host_with_another_address_is_not_connected_to_at_all(found):
    wires = Wires()
    client, _ = client_of(wires, *found)
    with pytest.raises(InvalidRequest, match="resolve to a public address"):
        client.get("http://images.example/")
    assert wires.to == []


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://[::1]/", "http://[::ffff:7f00:1]/", "http://0x7f.1/"])
def test_addresses_that_are_written_out_are_checked_as_well(url):
    with (
        httpx.Client(transport=PublicOnly(httpx.Limits())) as client,
        pytest.raises((InvalidRequest, httpx.InvalidURL)),
    ):
        client.get(url)


@pytest.fixture
def rebound(web):
    """A client for which all names have come to mean this machine, and the URL of a server on it."""
    with http_client(resolve=lambda _: ["127.0.0.1"]) as client:
        yield client, web.url.replace("127.0.0.1", "changing.example")


def test_an_image_of_a_name_that_leads_here_after_the_check_is_not_asked_for(session, web, rebound):
    client, url = rebound
    web.files["a.tif"] = geotiff(picture(30, 20, []))
    access = Access(RoleClients(Roles(session, None, None, "q"), "s3", Config()), http=client)
    with pytest.raises(InvalidRequest, match="resolve to a public address") as caught:
        RasterHeaders(access, resolve=lambda _: ["8.8.8.8"]).read(f"{url}/a.tif")
    assert caught.value.field == "imageUrls"
    assert web.asked == []


def test_a_model_of_a_name_that_leads_here_after_the_check_is_not_called(web, rebound):
    client, url = rebound
    with pytest.raises(InvalidRequest, match="resolve to a public address") as caught:
        HttpModel(client, f"{url}/model", content_type="image/png").features(b"tile")
    assert caught.value.field == "imageProcessor.name"
    assert web.asked == []


def test_a_name_that_cannot_be_looked_up_now_is_trouble_that_may_pass():
    def resolve(host):
        raise OSError("no network")

    with http_client(resolve=resolve) as client, pytest.raises(Unavailable):
        HttpModel(client, "https://models.example/model", content_type="image/png").features(b"tile")


@pytest.mark.parametrize(
    ("url", "listed", "to"),
    [
        ("https://10.0.0.5/m", {"10.0.0.5"}, [("10.0.0.5", 443)]),
        ("https://10.0.0.5/m", set(), None),
        ("https://10.0.0.5/m", {"10.0.0.6"}, None),
        ("https://models.example/m", {"10.0.0.5"}, None),
        ("https://169.254.169.254/m", {"169.254.169.254"}, None),
        ("https://127.0.0.1/m", {"127.0.0.1"}, None),
    ],
)
def test_a_private_address_is_connected_to_only_if_it_is_listed_itself(url, listed, to):
    wires = Wires()
    address = "10.0.0.5" if "example" in url else url.split("/")[2]
    transport = PublicOnly(httpx.Limits(), resolve=lambda _: [address], backend=wires, listed=listed)
    with httpx.Client(transport=transport) as client:
        if to is None:
            with pytest.raises(InvalidRequest, match="public address"):
                client.get(url)
        else:
            assert client.get(url).text == "hi"
    assert wires.to == (to or [])


@pytest.mark.parametrize(("endpoint", "guarded"), [(None, True), ("http://127.0.0.1:4566", False)])
def test_only_a_local_stack_connects_to_this_machine(monkeypatch, web, endpoint, guarded):
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    if endpoint is not None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    session = aws_session(aws_access_key_id="test", aws_secret_access_key="test", region_name="eu-central-1")
    with closing(Imaging(session, SystemClock(), "q")) as imaging:
        if guarded:
            with pytest.raises(InvalidRequest, match="resolve to a public address"):
                imaging._http.get(web.url)
        else:
            assert imaging._http.get(web.url).status_code == 404
    assert bool(web.asked) is not guarded
