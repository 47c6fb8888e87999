"""An unreadable history of pools, as a later version may have written it, stops nothing: a new one is begun."""

from __future__ import annotations

import json
import threading
import zlib

import pytest
from settings_contract import AN_EVENT

import builders as b
from trainmaster.adapters.dynamodb.rows import keyed
from trainmaster.adapters.dynamodb.settings import EVENTS
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.document import document


def of(events):
    return {"events": zlib.compress(json.dumps(events).encode())}


WRITTEN = document(AN_EVENT, sparse=True)
UNREADABLE = {
    "an action of a later version": of([{**WRITTEN, "action": "merge"}]),
    "a field is missing": of([{"action": "expand"}]),
    "no time": of([{**WRITTEN, "at": "yesterday"}]),
    "no events": of([1, "two"]),
    "no list": of(7),
    "other bytes": {"events": b"damaged"},
    "cut off": {"events": of([WRITTEN])["events"][:-9]},
    "no document": {"events": zlib.compress(b"\xff{")},
    "another attribute": {"entries": b""},
    "another type": {"events": "text"},
}


@pytest.mark.parametrize("kept", ["moto_engine", "dynoxide_engine"])
def test_an_unreadable_history_is_empty_and_restarts_with_the_next_event(kept, request, caplog):
    engine = request.getfixturevalue(kept)
    store, table = engine.open(), Table(engine.client, engine.name, threading.Event().wait)
    for what, values in UNREADABLE.items():
        caplog.clear()
        table.put(keyed(EVENTS, **values))
        assert store.settings(history=True).history == (), what
        before = store.settings()
        changed = store.set_settings(pools=[b.a_pool(cap=5)], version=before.version, events=[AN_EVENT])
        assert changed.version > before.version, what
        assert store.settings(history=True).history == (AN_EVENT,), what
        said = [(record.levelname, record.getMessage()) for record in caplog.records if record.levelname == "WARNING"]
        assert said == [("WARNING", "a row is left out")] * 2, what
