"""`trainmaster exporter`: a scrape over HTTP of the real API, and the Grafana board against what a scrape finds."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Any

import boto3
import httpx
import pytest
from prometheus_client import openmetrics, parser
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families

from api_fuzz import as_wsgi
from api_world import ApiWorld
from builders import G5, NOW, P5, a_job, a_preempted_job, a_running_job, at
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.retry import Retry
from trainmaster.domain.capacity.units import Pool
from trainmaster.exporter.app import Exporter, QueueCollector

NAME = re.compile(r"trainmaster_\w+")
SHARES = {
    "vision": {"nominal": {P5: 2}, "budget": {"gpuHours": 64}},
    "speech": {"nominal": {P5: 1}},
}


class Requests:
    """The API over HTTP, counting requests by status; `broken` makes it answer with errors."""

    def __init__(self, world: ApiWorld) -> None:
        self._inner: Any = httpx.WSGITransport(app=as_wsgi(world))
        self.statuses: list[tuple[str, int]] = []
        self.broken = False

    def handle(self, request: httpx.Request) -> httpx.Response:
        if self.broken:
            return httpx.Response(403, json={"message": "User is not authorized"})
        response = self._inner.handle_request(request)
        response.read()
        self.statuses.append((request.url.path, response.status_code))
        return response


class Ticks:
    """A monotonic clock that a test moves."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def world():
    world = ApiWorld(pools={P5: Pool(P5, 4), G5: Pool(G5, 2)})
    assert world.put("/settings", {"shares": SHARES}).status == 200
    world.clock.moment = at(3_600)
    world.seed(
        a_running_job("runs", share="vision", units={P5: 3}),
        a_job("waits", share="vision", units={P5: 4}, entry_time=at(-60)),
        a_preempted_job("again", share="speech", units={P5: 4}, entry_time=at(-9_000), now=at(600)),
        a_job("odd", share='o"d\\d', units={G5: 9}),
    )
    return world


@contextmanager
def serving(world, **options):
    requests, ticks = Requests(world), Ticks()
    session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    retry = Retry(max_attempts=1)
    transport = httpx.MockTransport(requests.handle)
    with ApiClient("https://api", session=session, transport=transport, retry=retry, environ={}) as api:
        found = Exporter(QueueCollector(api, clock=ticks, now=world.clock.now), **options)
        thread = Thread(target=found.serve)
        thread.start()
        try:
            yield found, requests, ticks
        finally:
            found.server.shutdown()
            thread.join(10)


def scrape(found, accept="text/plain"):
    response = httpx.get(found.url, headers={"accept": accept}, trust_env=False)
    assert response.status_code == 200
    return response


def samples_of(response):
    """The samples of a scrape: name and labels to value."""
    families = parser.text_string_to_metric_families(response.text)
    return {(each.name, frozenset(each.labels.items())): each.value for one in families for each in one.samples}


def value(samples, name, **labels):
    return samples[f"trainmaster_{name}", frozenset(labels.items())]


def test_a_scrape_shows_pools_shares_and_waits(world):
    with serving(world) as (found, _, _):
        samples = samples_of(scrape(found))
    assert value(samples, "up") == 1
    assert value(samples, "pool_cap", pool=P5, kind="on-demand") == 4
    assert [value(samples, "pool_units", pool=P5, state=state) for state in ("used", "free", "external")] == [3, 1, 0]
    assert value(samples, "share_jobs", share="vision", state="running") == 1
    assert value(samples, "share_units", share="vision", pool=P5, state="borrowed") == 1
    assert value(samples, "budget_used_ratio", share="vision") == pytest.approx(24 / 64)
    assert value(samples, "oldest_wait_seconds", share="vision") == 3_660
    assert value(samples, "oldest_wait_seconds", share="speech") == 3_000, "since its attempt ended"
    assert value(samples, "next_start_timestamp_seconds", pool=P5) >= NOW.timestamp()
    assert sum(number for (name, _), number in samples.items() if name == "trainmaster_waiting_jobs") == 3


def test_every_metric_has_a_help_text_and_a_type(world):
    with serving(world) as (found, _, _):
        text = scrape(found).text
    for family in parser.text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert family.documentation.endswith(".")
        assert NAME.fullmatch(family.name)


def test_the_page_lists_every_metric_with_its_labels(world):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "prometheus.md").read_text()
    rows = re.findall(r"^\| (`trainmaster_[^|]*) \| ([^|]*)\|", page, re.MULTILINE)
    listed = {name: set(re.findall(r"`(\w+)`", labels)) for names, labels in rows for name in NAME.findall(names)}
    with serving(world) as (found, _, _):
        samples = samples_of(scrape(found))
    assert listed == {name: {key for key, _ in labels} for name, labels in samples}


def test_a_share_with_quotation_marks_in_its_name_stays_one_label(world):
    with serving(world) as (found, _, _):
        samples = samples_of(scrape(found))
    assert value(samples, "oldest_wait_seconds", share='o"d\\d') == 3_600


def test_a_scraper_may_ask_for_openmetrics(world):
    with serving(world) as (found, _, _):
        response = scrape(found, "application/openmetrics-text; version=1.0.0")
    assert response.headers["content-type"].startswith("application/openmetrics-text")
    assert openmetrics.exposition.CONTENT_TYPE_LATEST.startswith("application/openmetrics-text")
    assert "trainmaster_pool_cap" in {family.name for family in open_families(response.text)}


def test_many_scrapes_cost_one_poll_and_an_unchanged_queue_three_conditional_requests(world):
    with serving(world) as (found, requests, ticks):
        first = [samples_of(scrape(found)) for _ in range(3)]
        paths = ["/pools", "/shares", "/queue"]
        assert requests.statuses == [(path, 200) for path in paths]
        ticks.seconds += 30
        again = samples_of(scrape(found))
        assert requests.statuses[3:] == [(path, 304) for path in paths]
        assert first == [again] * 3
        world.submit("new", instance_type=G5)
        world.clock.moment += timedelta(minutes=1)
        ticks.seconds += 30
        assert value(samples_of(scrape(found)), "pool_waiting_jobs", pool=G5) == 1 + value(
            again, "pool_waiting_jobs", pool=G5
        )


def test_while_the_api_does_not_answer_there_is_nothing_but_up_and_then_everything_again(world, caplog):
    with serving(world) as (found, requests, ticks):
        before = samples_of(scrape(found))
        requests.broken = True
        ticks.seconds += 30
        assert samples_of(scrape(found)) == {("trainmaster_up", frozenset()): 0}
        assert "does not answer" in caplog.text
        requests.broken = False
        ticks.seconds += 30
        assert samples_of(scrape(found)) == before


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/metrics/x", 404), ("POST", "/metrics", 405), ("HEAD", "/metrics", 501)],
)
def test_nothing_else_is_served(world, method, path, status):
    with serving(world) as (found, requests, _):
        url = f"http://127.0.0.1:{found.server.server_port}{path}"
        assert httpx.request(method, url, trust_env=False).status_code == status
        assert requests.statuses == []


@pytest.mark.parametrize(("options", "status"), [({}, 403), ({"allowed_hosts": frozenset({"metrics.test"})}, 200)])
def test_a_scrape_that_names_another_host_is_refused_unless_that_host_is_allowed(world, options, status):
    with serving(world, **options) as (found, _, _):
        answer = httpx.get(found.url, headers={"host": "metrics.test"}, trust_env=False)
    assert answer.status_code == status


def test_it_listens_on_loopback_unless_another_address_is_given(world):
    with serving(world) as (found, _, _):
        assert found.server.server_address[0] == "127.0.0.1"
    with serving(world, address="127.0.0.2") as (found, _, _):
        assert found.url.startswith("http://127.0.0.2:")
        assert scrape(found).status_code == 200


# -- the board


def board():
    return json.loads(files("trainmaster.exporter").joinpath("grafana.json").read_text())


def queries():
    found = board()
    yield from (target["expr"] for panel in found["panels"] for target in panel["targets"])
    yield from (each["query"] for each in found["templating"]["list"] if each["type"] == "query")


def test_every_series_and_label_on_the_board_is_in_a_scrape(world):
    with serving(world) as (found, _, _):
        samples = samples_of(scrape(found))
    labels = {name: {key for (at_, pairs) in samples if at_ == name for key, _ in pairs} for name, _ in samples}
    shown = set()
    for query in queries():
        names = NAME.findall(query)
        assert names, query
        for name, matchers in re.findall(r"(trainmaster_\w+)(?:\{([^}]*)\})?", query):
            assert name in labels, query
            for label, operator, text in re.findall(r"(\w+)(=~|!=|=)\"([^\"]*)\"", matchers):
                assert label in labels[name], query
                values = {dict(pairs)[label] for (at_, pairs) in samples if at_ == name}
                assert text.startswith("$") or values & set(text.split("|")), (query, operator)
        for listed in re.findall(r"\b(?:by|ignoring) \(([^)]*)\)", query):
            assert set(re.findall(r"\w+", listed)) <= set().union(*(labels[name] for name in names)), query
        shown.update(names)
    unshown = {"trainmaster_info", "trainmaster_pool_open", "trainmaster_budget_renews_timestamp_seconds"}
    assert shown == labels.keys() - unshown


def test_panels_have_identifiers_of_their_own_and_do_not_overlap():
    panels = board()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for box in (panel["gridPos"] for panel in panels)
        for x in range(box["x"], box["x"] + box["w"])
        for y in range(box["y"], box["y"] + box["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) <= 23


def test_a_legend_names_labels_that_its_query_leaves():
    for target in (target for panel in board()["panels"] for target in panel["targets"]):
        left = re.findall(r"^sum by \(([^)]*)\)", target["expr"])
        named = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
        assert not left or set(named) == set(re.findall(r"\w+", left[0]))
