"""One poll of the API for all pages, and what each page is told."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from console_server import Running, serving
from hypothesis import given
from hypothesis import strategies as st

from fake_api import FakeApi
from trainmaster.client.api.errors import Unreachable
from trainmaster.console.differences import differences
from trainmaster.console.feed import KEPT_SECONDS, MAX_WATCHED, Feed
from trainmaster.console.routes import Read, read_of

QUEUE = read_of("/queue")
JOBS = read_of("/jobs?limit=5")
assert QUEUE is not None
assert JOBS is not None

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["jobName", "name", "a", "b"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def arranged(value: Any, path: list[Any], added: list[Any], places: list[int]) -> list[Any]:
    for step in path:
        value = value[step]
    rest = iter(added)
    return [next(rest) if place < 0 else value[place] for place in places]


def applied(value: Any, changes: list[list[Any]]) -> Any:
    """The page's side: `lib/patch.js` does the same, and `tests/console` proves it on the same cases."""
    value = json.loads(json.dumps(value))
    for path, *told in changes:
        new = told if len(told) < 2 else [arranged(value, path, *told)]
        if not path:
            value = new[0]
            continue
        *above, last = path
        inner = value
        for step in above:
            inner = inner[step]
        if new:
            inner[last] = new[0]
        else:
            del inner[last]
    return value


@given(VALUES, VALUES)
def test_the_differences_make_the_new_value_of_the_old(old, new):
    found = json.loads(json.dumps(differences(old, new)))
    assert json.dumps(applied(old, found), sort_keys=True) == json.dumps(new, sort_keys=True)


@given(VALUES)
def test_equal_values_have_no_differences(value):
    assert differences(value, json.loads(json.dumps(value))) == []


def test_one_changed_job_is_one_small_change():
    jobs = [{"jobName": f"job{number}", "priority": number} for number in range(100)]
    moved = [dict(job) for job in jobs]
    moved[7]["priority"] = 100
    assert differences({"jobs": jobs}, {"jobs": moved}) == [[["jobs", 7, "priority"], 100]]


def test_jobs_that_leave_come_and_change_places_are_not_sent_whole():
    jobs = [{"jobName": f"job{number}", "position": number, "text": "long " * 200} for number in range(100)]
    new = {"jobName": "new", "position": 0, "text": ""}
    later = [{**job, "position": place} for place, job in enumerate([new, *reversed(jobs[1:])])]
    found = differences({"jobs": jobs}, {"jobs": later})
    assert found[0] == [["jobs"], [new], [-1, *range(99, 0, -1)]]
    assert {tuple(path[-1:]) for path, *_ in found[1:]} == {("position",)}
    assert len(json.dumps(found)) < 10_000 < len(json.dumps(later)) / 10


@pytest.mark.parametrize(
    ("old", "new"), [([], [{"name": "a"}]), ([{"name": "a"}], []), ([{"name": "a"}], [{"name": "b"}]), ([1, 2], [2])]
)
def test_a_list_that_keeps_nothing_is_replaced(old, new):
    assert differences(old, new) == [[[], new]]


@given(st.lists(st.sampled_from("abcdef"), max_size=6), st.lists(st.sampled_from("abcdef"), max_size=6), st.data())
def test_lists_of_named_items_are_rearranged(before, after, data):
    old, new = ([{"jobName": name, "n": data.draw(st.integers(0, 2))} for name in names] for names in (before, after))
    assert applied(old, json.loads(json.dumps(differences(old, new)))) == new


class Api:
    """Counts reads; `fails` makes one fail."""

    def __init__(self) -> None:
        self.reads: Counter[Read] = Counter()
        self.error: Exception | None = None
        self.value: Callable[[], Any] = lambda: {"n": 1}

    def __call__(self, read: Read) -> Any:
        self.reads[read] += 1
        if self.error is not None:
            raise self.error
        return self.value()


class Page:
    """A page that collects what it is told, in a thread of its own."""

    def __init__(self, feed: Feed, *watched: Read) -> None:
        self.told: list[dict[str, Any]] = []
        self._open = True
        self._events = feed.events(watched)
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        for event in self._events:
            if event.startswith(b"data: "):
                self.told.append(json.loads(event[6:]))
            if not self._open:
                break
        self._events.close()

    def wait(self, enough: Callable[[list[dict[str, Any]]], bool], seconds: float = 10.0) -> list[dict[str, Any]]:
        until = time.monotonic() + seconds
        while not enough(self.told):
            assert time.monotonic() < until, self.told
            time.sleep(0.005)
        return self.told

    def close(self) -> None:
        self._open = False
        self._thread.join(10)


def test_a_page_gets_the_value_and_then_what_changed():
    api, numbers = Api(), iter([{"n": 1, "m": 0}, {"n": 1, "m": 0}, {"n": 2, "m": 0}])
    last = {"n": 2, "m": 0}
    api.value = lambda: next(numbers, last)
    page = Page(Feed(api, poll_seconds=0.02), QUEUE)
    told = page.wait(lambda told: len(told) >= 4)
    assert told[0]["value"] == {"n": 1, "m": 0}
    assert [each["changes"] for each in told[1:4]] == [[], [[["n"], 2]], []]
    assert {each["watch"] for each in told} == {0}
    assert all(each["asOf"].endswith("Z") for each in told)
    page.close()


def test_the_reads_of_a_poll_do_not_wait_for_each_other():
    api, together = Api(), threading.Barrier(2, timeout=10)
    api.value = lambda: {"place": together.wait()}
    feed = Feed(api, poll_seconds=30)
    page = Page(feed, QUEUE, JOBS)
    assert {each["watch"] for each in page.wait(lambda told: len(told) == 2)} == {0, 1}
    assert all("error" not in each for each in page.told)
    feed.close()
    page.close()


def test_all_pages_share_a_poll():
    api = Api()
    feed = Feed(api, poll_seconds=30)
    pages = [Page(feed, QUEUE, JOBS) for _ in range(5)]
    for page in pages:
        page.wait(lambda told: len(told) == 2)
    assert api.reads == {QUEUE: 1, JOBS: 1}
    late = Page(feed, QUEUE)
    assert late.wait(lambda told: len(told) == 1)[0]["value"] == {"n": 1}
    assert api.reads[QUEUE] == 1
    feed.close()


def test_nothing_is_read_while_no_page_watches():
    api = Api()
    feed = Feed(api, poll_seconds=0.02)
    assert not api.reads
    page = Page(feed, QUEUE)
    page.wait(lambda told: len(told) >= 2)
    page.close()
    time.sleep(0.1)
    before = api.reads[QUEUE]
    time.sleep(0.2)
    assert api.reads[QUEUE] == before
    again = Page(feed, QUEUE)
    again.wait(lambda told: len(told) >= 2)
    again.close()


def test_a_slow_read_keeps_no_other_page_waiting():
    begun, answered = threading.Event(), threading.Event()

    def read(asked: Read) -> Any:
        if asked == QUEUE:
            begun.set()
            assert answered.wait(10)
        return {"path": asked.text}

    feed = Feed(read, poll_seconds=0.02)
    slow = Page(feed, QUEUE)
    assert begun.wait(10)
    quick = Page(feed, JOBS)
    quick.wait(lambda told: len(told) >= 3)
    assert slow.told == []
    answered.set()
    slow.wait(lambda told: len(told) >= 2)
    feed.close()


def test_pages_that_come_and_go_do_not_flood_the_api():
    answered, busy, most = threading.Event(), [], []

    def read(asked: Read) -> Any:
        busy.append(asked)
        most.append(len(busy))
        assert answered.wait(10)
        busy.remove(asked)
        return {"path": asked.text}

    feed = Feed(read, poll_seconds=60)
    reads = [read_of(f"/jobs/job-{number}") for number in range(3 * MAX_WATCHED)]
    pages = [Page(feed, *(each for each in reads[number : number + 3] if each)) for number in range(0, len(reads), 3)]
    until = time.monotonic() + 10
    while len(most) < MAX_WATCHED:
        assert time.monotonic() < until
        time.sleep(0.01)
    time.sleep(0.1)
    answered.set()
    for page in pages:
        page.wait(lambda told: len(told) == 3)
    assert max(most) == MAX_WATCHED
    feed.close()


def opened(feed: Feed) -> tuple[Iterator[bytes], dict[str, Any]]:
    """A stream and the first that it tells."""
    events = feed.events((QUEUE,))
    assert next(events).startswith(b"retry")
    return events, told(events)


def told(events: Iterator[bytes]) -> dict[str, Any]:
    return json.loads(next(events).removeprefix(b"data: "))


def test_a_page_that_opens_again_shows_what_was_read_before_until_the_new_answer_comes():
    now, answered, reads = [0.0], threading.Event(), []

    def read(asked: Read) -> Any:
        reads.append(asked)
        assert len(reads) == 1 or answered.wait(10)
        return {"n": len(reads)}

    feed = Feed(read, poll_seconds=5, clock=lambda: now[0])
    events, first = opened(feed)
    events.close()
    now[0] += KEPT_SECONDS - 1
    events, kept = opened(feed)
    assert (first["value"], kept["value"], kept["asOf"]) == ({"n": 1}, {"n": 1}, first["asOf"])
    answered.set()
    assert told(events)["changes"] == [[["n"], 2]]
    events.close()
    now[0] += KEPT_SECONDS + 1
    _, fresh = opened(feed)
    assert fresh["value"] == {"n": 3}
    feed.close()


@pytest.mark.parametrize("ends", ["an error", "a change"])
def test_what_may_be_wrong_is_not_shown_again(ends):
    api = Api()
    feed = Feed(api, poll_seconds=0.02 if ends == "an error" else 60)
    events, _ = opened(feed)
    api.error = RuntimeError("a fault") if ends == "an error" else None
    if ends == "an error":
        while "error" not in told(events):
            pass
    events.close()
    if ends == "a change":
        feed.hurry()
    api.error, api.value = None, lambda: {"n": 2}
    _, shown = opened(feed)
    assert shown["value"] == {"n": 2}
    feed.close()


def test_an_action_is_followed_at_once_and_quickly():
    api = Api()
    feed = Feed(api, poll_seconds=60, quick_seconds=0.02)
    page = Page(feed, QUEUE)
    page.wait(lambda told: len(told) == 1)
    time.sleep(0.1)
    assert api.reads[QUEUE] == 1
    feed.hurry()
    page.wait(lambda told: len(told) >= 5)
    feed.close()


@pytest.mark.parametrize("error", [Unreachable("no connection", hint="Check."), RuntimeError("a fault")])
def test_an_error_is_told_with_the_age_of_what_is_shown(error):
    api = Api()
    page = Page(Feed(api, poll_seconds=0.02), QUEUE)
    good = page.wait(lambda told: len(told) >= 1)[0]["asOf"]
    api.error = error
    bad = page.wait(lambda told: "error" in told[-1])[-1]
    assert bad["error"]["type"] == type(error).__name__
    assert good <= bad["asOf"]
    assert bad["asOf"] == page.told[-2]["asOf"] or "error" in page.told[-2]
    api.error, count = None, len(page.told)
    assert page.wait(lambda told: len(told) > count + 1 and "error" not in told[-1])[-1]["changes"] == []
    page.close()


def test_closing_ends_every_stream():
    feed = Feed(Api(), poll_seconds=60)
    pages = [Page(feed, QUEUE) for _ in range(3)]
    for page in pages:
        page.wait(lambda told: len(told) == 1)
    feed.close()
    for page in pages:
        page.close()
        assert not page._thread.is_alive()


def test_the_server_streams_changes_of_the_queue(console: Running, world: FakeApi):
    stream = console.stream("/events?watch=/queue&watch=/jobs%3Flimit%3D100")
    assert next(stream)["value"]["jobs"]
    assert next(stream)["watch"] in (0, 1)
    assert console.change("PATCH /api/jobs/job2", {"priority": 9}).status == 200
    until = time.monotonic() + 10
    for event in stream:
        assert time.monotonic() < until
        if [["jobs", 0, "priority"], 9] in event.get("changes", []):
            break
    stream.close()


def test_a_server_that_ends_ends_its_streams(world):
    with serving(world) as running:
        running.sign_in()
        stream = running.stream("/events?watch=/queue")
        next(stream)
    assert len(list(stream)) < 1000, "the stream has an end"
