"""Garbage under every key of the table: it is reported and left out, and every other job is listed, starts and ends."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from api_world import CONTEXT, read, rest_event
from builders import ADA, G5, P5
from samples import examples
from tables import new_table
from trainmaster.adapters.dynamodb.access.audit import ADOPTED, AUDIT
from trainmaster.adapters.dynamodb.catalogue import CATALOGUE, CURSORS
from trainmaster.adapters.dynamodb.control.restore import RESTORE
from trainmaster.adapters.dynamodb.reading import readable_jobs
from trainmaster.adapters.dynamodb.records import RECORDS
from trainmaster.adapters.dynamodb.rows import (
    ACTIVE_ROWS,
    EXTERNAL_ROWS,
    FINISHED,
    HELD,
    STATE,
    WAIT,
    WARM_ROWS,
    job_text,
    row_of,
)
from trainmaster.adapters.dynamodb.settings import EVENTS, SETTINGS
from trainmaster.domain.errors import UnreadableRow
from trainmaster.domain.restore import Restore
from trainmaster.handlers.api.app import build_app
from trainmaster.service.run_pass import run_pass
from world import TABLE, World, a_request

BOMB = zlib.compress(b" " * 100_000_000, level=9)
NAMES = ["running", "waiting", "other", "held", "ended"]
ATTRIBUTES = [
    *("jobName", "entryTime", "jobState", "priority", "version", "job", "apart", "lines", "jobDetails", "pieces"),
    *("lane", "notBefore", "units", "origin", "warm", "records", "catalogue", "cursors", "events", "expires", "pass"),
    *("finishedIn", "finishedAt", "st", "rev", "control", "unknown"),
]
SCALARS = [
    *(None, True, -1, 0, 1, 10**9, 10**11, 2.2e11, -6e10, 10**30, 0.5, 1e300, float("nan")),
    *("", "x", "running", "\ud800", "2026-11-21T12:00:00", "9999-12-31T23:59:59+00:00", [], {}, {"a": 1}),
]
TEXTS = ["2026-11-21", "2026-11-21T12:00:00", "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59Z", "[" * 9_000]
MEMBERS = [
    *("demand", "digest", "share", "preemptible", "maxRuntime", "keepAlive", "submittedBy", "attempt", "past", "work"),
    *("attemptTotals", "reservation", "retryAt", "stopRequested", "preemptionOverrides", "deadline", "after", "group"),
    *("ifParentFails", "maxConcurrent", "retries", "failures", "heldBy", "elastic", "history", "queueSelectsPool"),
    *("resources", "unknown"),
]


class GarbageWorld(World):
    """A world whose manager may report rows as faults."""

    has_faults = True


@contextmanager
def a_world():
    with new_table() as client:
        world = GarbageWorld(client, pools=f"{P5}=1,{G5}=2")
        world.submit("ended", kind=G5, training_seconds=10)
        world.run(120)
        world.submit("running", training_seconds=10**6)
        world.run(60)
        world.submit("waiting", priority=-1)
        world.submit("other", priority=-2)
        later = [{"Key": "trainmaster:not-before", "Value": "2027-01-01T00:00:00Z"}]
        world.submit_request({**a_request("held"), "Tags": later})
        world.run(60)
        assert world.states(*NAMES) == dict(
            zip(NAMES, ("running", "pending", "pending", "held", "completed"), strict=True)
        )
        yield world


SMALL = st.text(max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | SMALL,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SMALL, inner, max_size=3),
    max_leaves=5,
)
VALUES = st.one_of(
    st.builds(lambda text: {"S": text}, SMALL | JSON.map(json.dumps)),
    st.builds(lambda number: {"N": str(number)}, st.integers(-(10**18), 10**18)),
    st.builds(lambda data: {"B": data}, st.binary(max_size=9) | SMALL.map(lambda text: zlib.compress(text.encode()))),
    st.sampled_from([{"S": text} for text in TEXTS]),
    st.sampled_from([{"NULL": True}, {"BOOL": False}, {"L": []}, {"M": {}}, {"SS": ["a"]}, {"B": BOMB}]),
)
SCHEMAS = st.sampled_from([{}, {}, {"schema": {"S": "x"}}, {"schema": {"N": "-961222328"}}])
"""No number above 0: a newer schema refuses the table on purpose."""


def keys(lanes):
    texts = st.text("ab#~$0123456789", min_size=1, max_size=12)
    return st.one_of(
        st.builds(lambda lane, text: (WAIT, f"{lane}#{text}"), st.sampled_from(lanes), texts),
        st.builds(lambda partition, text: (partition, text), st.sampled_from([WAIT, HELD]), texts),
        st.builds(
            lambda prefix, text: (STATE, prefix + text),
            st.sampled_from([ACTIVE_ROWS, EXTERNAL_ROWS, WARM_ROWS, ""]),
            texts.filter(lambda text: text not in ("control", "pools")),
        ),
        st.builds(
            lambda name, text: (f"JOB#{name}", text),
            st.sampled_from(["running", "stranger"]),
            st.sampled_from(["ended", "history#0000000", "zzz"]),
        ),
        st.sampled_from([("AFTER#running", "stranger"), ("rdzv#a", "state"), EVENTS, CATALOGUE, CURSORS, RECORDS]),
        st.builds(
            lambda prefix, text: (prefix + "2026-11", text),
            st.sampled_from([AUDIT, ADOPTED]),
            st.sampled_from(["2026-11-21", "2026-11-21T11:00:00#a", "2026-11-21T11:00:00Z#a", "2026-11-21T1~"]),
        ),
    )


def places(value, above=()):
    """Yield the path of each value inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inside:
        yield (*above, name)
        yield from places(each, (*above, name))


def changed(value, path, new):
    """Return a JSON value with another one at this path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


@st.composite
def garbage(draw, lanes, rows):
    """A row of arbitrary attributes, or one of a job with an attribute, a member, a value or its place changed."""
    kind = draw(st.sampled_from(["attributes", "attribute", "member", "value", "moved"]))
    row = dict(draw(st.sampled_from(rows))) | draw(SCHEMAS)
    key = (row["pk"]["S"], row["sk"]["S"]) if kind in ("attribute", "member", "value") else draw(keys(lanes))
    if kind == "attributes":
        row = draw(st.dictionaries(st.sampled_from(ATTRIBUTES), VALUES, max_size=6))
    elif kind == "attribute":
        row |= {draw(st.sampled_from(sorted(row.keys() - {"pk", "sk", "schema"}))): draw(VALUES)}
    elif kind == "member":
        text = json.loads(row["job"]["S"]) | {draw(st.sampled_from(MEMBERS)): draw(JSON)}
        row |= {"job": {"S": json.dumps(text)}}
    elif kind == "value":
        text = json.loads(row["job"]["S"])
        text = changed(text, draw(st.sampled_from(list(places(text)))), draw(st.sampled_from(SCALARS)))
        row |= {"job": {"S": json.dumps(text)}}
    indexed = {name: value for name, value in row.items() if name not in ("finishedIn", "finishedAt")}
    if indexed.keys() != row.keys():
        # A row of any kind with these attributes is among the ended jobs.
        indexed |= {"finishedIn": {"S": FINISHED}, "finishedAt": {"S": draw(st.sampled_from(["0", "2026", "~"]))}}
    return {**indexed, "pk": {"S": key[0]}, "sk": {"S": key[1]}}


def rows_of(world):
    """The rows of a job of each state, all with one name, and attempts of their own."""
    jobs = [_renamed(world.job(name)) for name in NAMES]
    return [{**row_of(job), "job": {"S": job_text(row_of(job))}} for job in jobs]


def _renamed(job):
    attempt = job.attempt and replace(job.attempt, training_job_name="stranger")
    return replace(job, name="stranger", attempt=attempt, history=())


def lanes_of(world):
    rows = world.dynamodb.scan(TableName=TABLE)["Items"]
    return sorted({row["sk"]["S"].partition("#")[0] for row in rows if row["pk"]["S"] == WAIT})


READS = [
    "/queue",
    "/schedule",
    "/shares",
    "/usage",
    "/pools?history=true",
    "/settings",
    "/manager",
    "/audit",
    "/export",
    "/jobs/running",
    "/jobs/waiting",
]


def app_of(world):
    """The API for ADA as its admin."""
    application = world.application()
    application.settings = replace(application.settings, admins=(ADA.principal,))
    return build_app(application)


def check_reads(world):
    """Check that the API answers whatever is asked of other jobs."""
    app = app_of(world)
    for address in READS:
        path, _, query = address.partition("?")
        reply = read(app.resolve(rest_event("GET", path, query=dict(parse_qsl(query)), caller=ADA.arn), CONTEXT))
        assert reply.status == 200, (address, reply.body)


def names_listed(world):
    app = build_app(world.application())
    names, cursor = [], None
    for _ in range(30):
        query = {"limit": "2", **({"cursor": cursor} if cursor else {})}
        reply = read(app.resolve(rest_event("GET", "/jobs", query=query), CONTEXT))
        assert reply.status == 200, reply.body
        names += [job["jobName"] for job in reply.body["jobs"]]
        cursor = reply.body["nextCursor"]
        if not cursor:
            return names
    raise AssertionError("the pages do not come to an end")


@contextmanager
def stored(world, rows):
    """These rows are in the table, and gone again afterwards; those that were there are as before."""
    before = [world.dynamodb.get_item(TableName=TABLE, Key=_key(row)).get("Item") for row in rows]
    for row in rows:
        world.dynamodb.put_item(TableName=TABLE, Item=row)
    try:
        yield
    finally:
        for row, old in zip(rows, before, strict=True):
            world.dynamodb.delete_item(TableName=TABLE, Key=_key(row))
            if old is not None:
                world.dynamodb.put_item(TableName=TABLE, Item=old)
        # A job that can be read takes its course.
        for row in world.dynamodb.scan(TableName=TABLE)["Items"]:
            if "stranger" in f"{row['pk']['S']}{row['sk']['S']}":
                world.dynamodb.delete_item(TableName=TABLE, Key=_key(row))


def _key(row):
    return {"pk": row["pk"], "sk": row["sk"]}


def test_no_garbage_keeps_another_job_from_being_listed_started_or_ended():
    with a_world() as world:
        lanes, rows, left_out = lanes_of(world), rows_of(world), []

        @examples(90, deadline=None, suppress_health_check=list(HealthCheck))
        @given(found=st.lists(garbage(lanes, rows), min_size=1, max_size=4, unique_by=lambda row: str(_key(row))))
        def check(found):
            with stored(world, found):
                assert set(NAMES) <= set(names_listed(world))
                check_reads(world)
                passes = world.api_context.store.current_pass()
                world.run(60)
                assert world.api_context.store.current_pass() > passes
                snapshot = world.api_context.store.read_snapshot()
                left_out.extend(snapshot.unreadable)
                assert "running" in {job.name for job in snapshot.active}
                assert {"waiting", "other"} <= {job.name for job in snapshot.waiting}

        check()
        # Eighteen examples leave out about 18 rows; how many depends on the draws.
        assert len(left_out) > 5


def a_value(world, *path, value):
    """The row of a running stranger, with another value at a path of its text."""
    row = rows_of(world)[0]
    return row | {"job": {"S": json.dumps(changed(json.loads(row["job"]["S"]), path, value))}}


BY_HAND = {
    "a time without a zone": lambda world: rows_of(world)[0] | {"entryTime": {"S": "2026-11-21T12:00:00"}},
    "a priority that no cursor has": lambda world: rows_of(world)[0] | {"priority": {"N": "-1000000000"}},
    "text that is not Unicode": lambda world: a_value(world, "containerImage", value="\ud800"),
    "a negative schema": lambda world: rows_of(world)[1] | {"schema": {"N": "-5"}},
    "a job without a request": lambda world: rows_of(world)[1],
    "a nested history of pools": lambda _: at(EVENTS, events={"B": zlib.compress(b"[" * 100_000)}),
    "an audit entry without a time": lambda _: at((f"{AUDIT}2026-11", "2026-11-21T11:~"), entry={"S": "{}"}),
    "a newest audit entry without a time": lambda _: at((f"{AUDIT}2026-11", "~"), entry={"S": "{}"}),
    "a nested audit entry": lambda _: at(
        (f"{AUDIT}2026-11", "2026-11-21T11:00:00.000000Z#a"), entry={"S": "[" * 100_000}
    ),
}


@pytest.mark.parametrize("what", BY_HAND)
def test_a_row_costs_no_other_job_an_answer_or_a_pass(world, what):
    with stored(world, [BY_HAND[what](world)]):
        check_reads(world)
        assert set(NAMES) <= set(names_listed(world))
        assert run_pass(world.application().manager_context).pass_number == world.api_context.store.current_pass()


@pytest.fixture(scope="module")
def world():
    with a_world() as made:
        yield made


def at(key, **attributes):
    """A row at this key."""
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}, **attributes}


def damaged(world, name):
    """The live row of a job, with a text that cannot be read."""
    return {**row_of(world.job(name)), "job": {"S": "{"}}


def test_a_row_that_decompresses_to_more_than_it_may_takes_no_memory(world):
    bomb = {**row_of(world.job("ended")), "job": {"B": zlib.compress(b" " * 300_000_000, level=9)}}
    assert len(bomb["job"]["B"]) < 300_000
    tracemalloc.start()
    try:
        assert list(readable_jobs([bomb])) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


def test_a_damaged_job_fails_alone(world):
    with stored(world, [damaged(world, "waiting")]):
        assert set(names_listed(world)) == set(NAMES) - {"waiting"}
        app = build_app(world.application())
        answers = {name: read(app.resolve(rest_event("GET", f"/jobs/{name}"), CONTEXT)).status for name in NAMES}
        assert answers == dict.fromkeys(NAMES, 200) | {"waiting": 503}
        with pytest.raises(UnreadableRow, match="waiting cannot be read"):
            world.job("waiting")
    assert set(names_listed(world)) == set(NAMES)


def test_the_training_job_of_a_damaged_job_is_not_stopped_and_its_units_count(world):
    with stored(world, [damaged(world, "running")]):
        world.run(300)
        snapshot = world.api_context.store.read_snapshot()
        assert snapshot.unreadable == ("STATE/active#running",)
        assert snapshot.external == {P5: 1}
        assert [job.name for job in snapshot.waiting] == ["waiting", "other"]
    world.run(180)
    assert world.states("running", "waiting") == {"running": "running", "waiting": "pending"}
    assert world.api_context.store.read_snapshot().external == {}


def test_a_pass_counts_the_rows_that_it_left_out_as_faults(world):
    with stored(world, [damaged(world, "waiting"), at((STATE, "warm#a"), warm={"S": "[]"})]):
        report = run_pass(world.application().manager_context)
    left_out = [key for key in report.faults if key.startswith(("WAIT/", "STATE/warm#"))]
    assert len(left_out) == len(report.faults) == 2


@pytest.mark.parametrize("garbage", [{"B": BOMB}, {"B": zlib.compress(b"{}")}, {"S": "text"}, {"BOOL": False}])
def test_a_damaged_comparison_counts_as_none_and_is_replaced(world, garbage):
    with stored(world, [at(RESTORE, restore=garbage)]):
        store = world.api_context.store
        tracemalloc.start()
        try:
            assert store.restore() is None
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 10_000_000
        app = build_app(world.application())
        assert read(app.resolve(rest_event("GET", "/manager"), CONTEXT)).status == 200
        asked = Restore(asked_at=world.now())
        store.save_restore(asked)
        assert store.restore() == asked


@pytest.mark.parametrize("key", [RECORDS, CATALOGUE, CURSORS])
def test_damaged_statistics_count_as_none(world, key):
    with stored(world, [at(key, records={"B": BOMB}, catalogue={"B": b"x"}, cursors={"S": "["})]):
        before = world.api_context.store.current_pass()
        world.run(60)
        assert world.api_context.store.current_pass() > before
        assert set(names_listed(world)) == set(NAMES)


def test_damaged_settings_are_named_and_nothing_is_started_under_others(world):
    with stored(world, [at(SETTINGS, version={"N": "7"}, parameter={"S": world.pools}, pools={"S": "7"})]):
        with pytest.raises(UnreadableRow, match="STATE/pools"):
            world.api_context.store.read_snapshot()
        with pytest.raises(UnreadableRow, match="STATE/pools"):
            run_pass(world.application().manager_context)


def test_damaged_records_are_replaced_when_a_job_ends(world):
    world.dynamodb.put_item(TableName=TABLE, Item=at(RECORDS, records={"B": b"x"}))
    world.submit("short", kind=G5, training_seconds=10)
    world.run_until_ended("short")
    assert world.api_context.store.read_snapshot().records.history.kinds
