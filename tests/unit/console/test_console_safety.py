"""Attacks on the console's server: each safety rule has one that fails without it."""

from __future__ import annotations

import json
import re
import socket
import time
from contextlib import ExitStack
from itertools import pairwise

import pytest
from console_server import Running, read, serving

from trainmaster.console.app import Options
from trainmaster.console.loopback import MAX_BODY_BYTES, MAX_CONNECTIONS, LoopbackServer, json_response

OPEN = ["/", "/index.html", "/api/queue", "/session", "/events?watch=/queue", "/api/jobs/job1", "/replay"]


def test_it_listens_on_loopback_only(console):
    assert console.console.server.socket.getsockname()[0] == "127.0.0.1"


# -- names of hosts


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil:{port}"]
)
@pytest.mark.parametrize("path", ["/", "/api/queue", "/?token=x"])
def test_a_name_that_resolves_to_this_machine_is_refused(console, host, path):
    """DNS rebinding: the page of another site resolves its own name to 127.0.0.1."""
    answer = console.ask(f"GET {path}", host=host.format(port=console.console.port) or " ")
    assert answer.status == 403
    assert "--allowed-host" in answer.json["error"]["message"]


def test_a_rebound_page_cannot_use_the_token(stranger):
    token = stranger.console.url.partition("?")[2]
    assert stranger.ask(f"GET /?{token}", host="evil.example").status == 403
    assert stranger.ask(f"GET /?{token}").status == 200


@pytest.mark.parametrize(
    "hosts", [b"", b"Host: {host}\r\nHost: evil.example\r\n", b"Host: evil.example\r\nHost: {host}\r\n"]
)
def test_a_request_names_one_host(console, hosts):
    lines = hosts.replace(b"{host}", console.host.encode()) + f"Cookie: {console.cookie}\r\n".encode()
    assert read(console.raw(b"GET /api/queue HTTP/1.1\r\n" + lines + b"\r\n")).status == 403


def test_localhost_is_this_machine_too(console):
    assert console.ask("GET /api/queue", host=f"localhost:{console.console.port}").status == 200


def test_a_tunnel_needs_the_name_that_was_allowed(world):
    hosts = frozenset({"studio.example", "jump.example:8443"})
    with serving(world, Options(allowed_hosts=hosts)) as running:
        running.sign_in()
        allowed = ["studio.example:443", "Studio.example:1", "jump.example:8443"]
        refused = ["jump.example:1", "jump.example", "xstudio.example:443", "studio.example.evil:443"]
        assert {running.ask("GET /session", host=host).status for host in allowed} == {200}
        assert {running.ask("GET /session", host=host).status for host in refused} == {403}


# -- signing in


@pytest.mark.parametrize("path", OPEN)
@pytest.mark.parametrize(
    "cookie", ["", "trainmaster-console-{port}=", "trainmaster-console-{port}=guess", "a=b", "=;;\x7f"]
)
def test_without_the_cookie_nothing_is_served(stranger, world, path, cookie):
    answer = stranger.ask(f"GET {path}", Cookie=cookie.format(port=stranger.console.port))
    assert answer.status == 403
    assert b"Open the address that the terminal shows" in answer.body
    assert world.calls == []


@pytest.mark.parametrize("line", ["DELETE /api/jobs/job1", "PATCH /api/jobs/job1", "POST /replay"])
def test_without_the_cookie_nothing_changes(stranger, world, line):
    assert stranger.change(line, {"hold": True}).status == 403
    assert world.calls == []


def test_a_token_signs_in_one_browser(stranger):
    token = stranger.console.url.partition("?")[2]
    first = stranger.ask(f"GET /?{token}")
    assert first.status == 200
    assert b'content="0;url=./"' in first.body, "an address from the root would leave a proxy's path"
    again = stranger.ask(f"GET /?{token}")
    assert again.status == 403
    assert "set-cookie" not in again.headers
    assert b"has been used" in again.body


def test_the_next_browser_gets_a_token_of_its_own(stranger):
    addresses = [stranger.console.url]
    for _ in range(3):
        stranger.sign_in()
        addresses.append(stranger.console.url)
        assert stranger.ask("GET /session").status == 200
    assert len(set(addresses)) == 4
    assert stranger.announced == addresses[1:]


@pytest.mark.parametrize("token", ["", "x", "%00", "%ff", "é"])
def test_a_wrong_token_signs_nobody_in(stranger, token):
    answer = stranger.ask(f"GET /?token={token}")
    assert answer.status in (400, 403)
    assert "set-cookie" not in answer.headers


def test_a_browser_looks_for_no_icon_of_the_page_that_signs_it_in(stranger):
    for address in (f"GET /{stranger.console.url.rpartition('/')[2]}", "GET /?token=x"):
        assert b'<link rel=icon href="data:,">' in stranger.ask(address).body


def test_a_token_cannot_be_guessed(stranger):
    assert len(stranger.console.url.partition("token=")[2]) >= 43


def test_scripts_and_other_sites_cannot_read_the_cookie(stranger):
    answer = stranger.ask(f"GET /?{stranger.console.url.partition('?')[2]}")
    attributes = {part.strip() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert attributes == {"HttpOnly", "SameSite=Strict"}
    assert b"token" not in answer.body


# -- changes


@pytest.mark.parametrize("header", [{}, {"X_Trainmaster_Console": ""}, {"X_Trainmaster_Console": "0"}])
@pytest.mark.parametrize(
    "line",
    [
        "DELETE /api/jobs/job1",
        "PATCH /api/jobs/job1",
        "POST /api/plan",
        "PUT /api/pools",
        "POST /replay",
        "DELETE /replay",
    ],
)
def test_a_change_needs_the_header(console, world, line, header):
    """A form or an image of another site cannot set a header."""
    assert console.ask(line, body=b"{}", **header).status == 403
    assert world.calls == []


def test_a_form_is_no_change(console, world):
    answer = console.change("PATCH /api/jobs/job1", {"hold": True}, Content_Type="text/plain")
    assert answer.status == 415
    assert world.calls == []


FROM_OTHERS = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
]


@pytest.mark.parametrize("header", FROM_OTHERS, ids=lambda each: "-".join(each.values()))
@pytest.mark.parametrize(
    "line",
    [
        "DELETE /api/jobs/job2",
        "GET /api/queue",
        "GET /events?watch=/queue",
        "GET /session",
        "GET /replay",
        "POST /replay",
    ],
)
def test_pages_of_other_sites_and_ports_are_refused(console, world, line, header):
    """A server on another port of this machine is the same site, so that the browser sends it the cookie."""
    assert console.change(line, **header).status == 403
    assert world.calls == []


def test_the_own_page_is_served(console, world):
    own = {"Origin": f"http://{console.host}", "Sec_Fetch_Site": "same-origin"}
    assert console.change("DELETE /api/jobs/job2", **own).status == 200
    assert world.jobs["job2"]["jobState"] == "cancelled"


@pytest.mark.parametrize("line", ["DELETE /api/jobs/job2", "PATCH /api/jobs/job2", "PUT /api/settings"])
def test_read_only_refuses_every_change(world, line):
    with serving(world, Options(read_only=True)) as running:
        running.sign_in()
        answer = running.change(line, {"hold": True})
        assert answer.status == 403
        assert "--read-only" in answer.json["error"]["message"]
        assert running.ask("GET /api/jobs/job2").status == 200
        assert [call for call in world.calls if call[0] != "GET"] == []
        assert running.ask("GET /session").json["readOnly"] is True


# -- methods and routes


@pytest.mark.parametrize("method", ["OPTIONS", "HEAD", "TRACE", "CONNECT", "PROPFIND", "get", "X" * 5_000])
def test_other_methods_are_refused(console, world, method):
    assert console.change(f"{method} /api/jobs/job1").status == 501
    assert world.calls == []


FOREIGN = [
    *("POST /api/jobs/job1", "PUT /api/pools", "POST /api/settings", "PUT /api/pools/p", "DELETE /api/pools"),
    *("DELETE /api/pause", "PUT /api/pause", "POST /api/import", "POST /api/restore", "GET /api/export"),
    *("POST /api/jobs/job1/resize", "PATCH /api/queue", "DELETE /api/jobs", "POST /", "DELETE /app.js", "PUT /session"),
    *("GET /api", "GET /api/", "GET /api/jobs/", "GET /api/jobs/job1/", "GET /api//queue", "GET /api/queue/x"),
    *("GET /api/openapi.json/x", "GET /API/queue", "GET /api/nothing"),
]


@pytest.mark.parametrize("line", FOREIGN)
def test_only_listed_routes_are_forwarded(console, world, line):
    assert console.change(line, {}).status in (404, 405)
    assert world.calls == []


@pytest.mark.parametrize("query", ["purge=true", "why=true&x=1", "why=true&why=false&purge=true"])
def test_only_listed_parameters_are_forwarded(console, world, query):
    assert console.change(f"DELETE /api/jobs/job1?{query}").status == 400
    assert console.ask(f"GET /api/queue?{query}").status == 400
    assert world.calls == []


TRAVERSALS = [
    *(
        "/../pyproject.toml",
        "/..%2f..%2fapp.py",
        "/%2e%2e/app.py",
        "/....//app.py",
        "/static/../app.py",
        "/vendor/../app.js",
    ),
    *(
        "/vendor%2fpreact.mjs",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/app.js%00.html",
        "/app.js/",
        "/./app.js",
        "/C:%5cboot.ini",
    ),
    *("/api/jobs/..", "/api/jobs/%2e%2e", "/api/jobs/..%2fpools", "/api/jobs/a%2fb", "/api/jobs/job1%2frendezvous"),
    *(
        "/api/jobs/a%3fpurge=true",
        "/api/jobs/a%23",
        "/api/jobs/%00",
        "/api/jobs/a%0d%0aX:%20y",
        "/api/jobs/" + "a" * 129,
    ),
    *("/api%2fqueue", "/api/..%2fadmin", "/api/%71ueue/.."),
]


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_leads_elsewhere(console, world, path):
    assert console.ask(f"GET {path}").status in (400, 404)
    assert world.calls == []


ABSOLUTE = [
    "http://evil.example/",
    "http://{host}/api/queue",
    "https://evil.example/api/queue",
    "*",
    "evil.example:443",
]


@pytest.mark.parametrize("target", ABSOLUTE)
def test_it_is_no_proxy(console, world, target):
    assert console.ask(f"GET {target.format(host=console.host)}").status == 400
    assert world.calls == []


ELSEWHERE = [
    "http://evil.example/",
    "//evil.example/queue",
    "/../queue",
    "/add-job",
    "/queue?url=http://evil.example",
    "queue",
    "",
]


@pytest.mark.parametrize("watched", [*ELSEWHERE, "/queue&watch=/nothing", "&".join(["watch=/queue"] * 9)])
def test_a_page_watches_only_what_is_listed(console, world, watched):
    assert console.ask(f"GET /events?watch={watched}").status == 400
    assert world.calls == []


def test_a_header_of_the_page_is_not_forwarded(console, world):
    """Nothing that the page sends reaches the API but route, parameters and body."""
    console.ask("GET /api/queue", X_Forwarded_Host="evil.example", Authorization="Bearer x")
    assert [call[:2] for call in world.calls] == [("GET", "/queue")]


# -- headers of the answers


ANSWERS = [
    "GET /",
    "GET /api/queue",
    "GET /nothing",
    "GET /api/nothing",
    "OPTIONS /",
    "GET http://evil/",
    "GET /?token=x",
    "BAD",
]


@pytest.mark.parametrize("line", ANSWERS)
def test_every_answer_is_safe_to_show(console, line):
    headers = console.ask(line, Origin=f"http://{console.host}").headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["connection"] == "close"
    assert not [name for name in headers if name.startswith("access-control")]
    assert "Python" not in headers["server"]


def test_what_a_job_is_called_cannot_become_markup(console):
    answer = console.ask("GET /%3Cscript%3Ealert(1)%3C/script%3E")
    assert b"<script>" not in answer.body


# -- sizes and times


@pytest.mark.parametrize("length", [str(MAX_BODY_BYTES + 1), "9" * 30, "9" * 5_000])
def test_a_large_body_is_refused_before_it_is_read(console, world, length):
    began = time.monotonic()
    assert console.change("PATCH /api/jobs/job1", Content_Length=length).status == 413
    assert time.monotonic() - began < 2
    assert world.calls == []


@pytest.mark.parametrize("length", ["-1", "1e3", "0x10", "+1", "1_0", "²", ""])
def test_a_length_is_a_number(console, world, length):
    assert console.change("PATCH /api/jobs/job1", Content_Length=length).status in (400, 431)
    assert world.calls == []


def test_a_length_is_stated_once_and_bodies_are_not_chunked(console, world):
    """Two readings of one request's length are how requests are smuggled."""
    assert console.change("PATCH /api/jobs/job1", Transfer_Encoding="chunked").status == 411
    assert console.change("PATCH /api/jobs/job1", {"hold": True}, content_length="3").status == 411
    assert world.calls == []


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000])
def test_a_body_is_a_json_object(console, world, body):
    assert console.change("PATCH /api/jobs/job1").status != 500
    calls = len(world.calls)
    assert console.ask("PATCH /api/jobs/job1", body=body, X_Trainmaster_Console="1").status == 400
    assert len(world.calls) == calls


@pytest.mark.parametrize(
    "part",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST /api/plan HTTP/1.1\r\n{host}Content-Length: 9\r\n\r\n{",
    ],
)
def test_a_slow_client_is_cut_off_though_it_keeps_sending(part):
    """A byte now and then resets a time-out per read, not a deadline."""
    server = LoopbackServer(lambda _: json_response(200, {}), request_seconds=0.4)
    with ExitStack() as stack:
        stack.callback(server.server_close)
        connection = stack.enter_context(socket.create_connection(server.server_address[:2]))
        server.socket.settimeout(5)
        server.handle_request()
        began = time.monotonic()
        connection.sendall(part.replace(b"{host}", f"Host: 127.0.0.1:{server.server_port}\r\n".encode()))
        connection.settimeout(0.05)
        while time.monotonic() - began < 5 and not _ended(connection):
            pass
        assert 0.2 < time.monotonic() - began < 2


def _ended(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"x")
        return connection.recv(1024) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_idle_connections_do_not_keep_others_out_for_long():
    server = LoopbackServer(lambda _: json_response(200, {}), request_seconds=0.3)
    server.socket.settimeout(5)
    with ExitStack() as stack:
        stack.callback(server.server_close)
        held = [
            stack.enter_context(socket.create_connection(server.server_address[:2])) for _ in range(MAX_CONNECTIONS)
        ]
        for _ in held:
            server.handle_request()
        refused = stack.enter_context(socket.create_connection(server.server_address[:2], timeout=5))
        server.handle_request()
        assert refused.recv(1) == b""
        assert {connection.recv(1) for connection in held} == {b""}
        request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode()
        for _ in range(50):
            with socket.create_connection(server.server_address[:2], timeout=5) as later:
                later.sendall(request)
                server.handle_request()
                if later.recv(1024):
                    return
                time.sleep(0.02)
        pytest.fail("no connection is accepted any more")


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01\x02\x00\x01\x00", b"\r\n\r\n", b"A" * 70_000 + b"\r\n\r\n", b"GET /\r\n\r\n", b"\x00" * 9]
)
def test_what_is_no_request_gets_no_page(console, world, data):
    answer = console.raw(data + b"\r\n\r\n")
    assert b"Traceback" not in answer
    assert world.calls == []


def test_many_headers_are_refused(console):
    assert console.ask("GET /", **{f"X{number}": "y" for number in range(200)}).status == 431


# -- secrets


def test_nothing_is_printed(console, capfd):
    console.ask("GET /?token=secret")
    console.raw(b"nonsense\r\n\r\n")
    said = capfd.readouterr()
    assert said.out + said.err == ""


def test_the_page_is_told_whose_identity_it_is_and_no_secret(console):
    for _ in range(100):
        told = console.ask("GET /session").json
        if told["arn"]:
            break
        time.sleep(0.02)
    assert told["arn"] == "arn:aws:sts::123456789012:assumed-role/ml/ada"
    assert told["expiresAt"] is None
    assert not re.search("AKID|secret", json.dumps(told))


def test_sessions_differ(world):
    cookies = []
    with serving(world) as running:
        for _ in range(3):
            running.sign_in()
            cookies.append(running.cookie)
    assert all(one != other for one, other in pairwise(cookies))


def test_a_cookie_of_another_console_does_not_fit(console, world):
    with serving(world) as other:
        assert isinstance(other, Running)
        assert other.ask("GET /session", Cookie=console.cookie).status == 403
        value = console.cookie.partition("=")[2]
        assert other.ask("GET /session", Cookie=f"trainmaster-console-{other.console.port}={value}").status == 403
