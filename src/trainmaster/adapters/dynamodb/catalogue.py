"""The learned catalogue of instance types and the placement cursors, as two small rows beside the settings.

Only types that differ from the shipped table are stored, so the row stays small.
"""

from __future__ import annotations

import json
import zlib
from datetime import datetime
from typing import Any

from trainmaster.adapters.dynamodb.encoding.compression import inflate
from trainmaster.adapters.dynamodb.reading import read_or
from trainmaster.adapters.dynamodb.rows import MAX_TEXT_BYTES, STATE, Key, Row, keyed
from trainmaster.domain.capacity.catalogue import Catalogue, ReportedQuota
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.compat import UTC
from trainmaster.domain.document import document, value_of
from trainmaster.domain.plan import Cursors

CATALOGUE: Key = (STATE, "catalogue")
CURSORS: Key = (STATE, "cursors")


def catalogue_row(catalogue: Catalogue) -> Row:
    """Return the row of the learned catalogue."""
    types = {name: kind for name, kind in catalogue.learned.items() if kind != SHIPPED.get(name)}
    values: dict[str, Any] = {
        "types": [document(kind, sparse=True) for _, kind in sorted(types.items())],
        "quotas": dict(sorted(catalogue.quotas.items())),
        "at": _seconds(catalogue.learned_at),
        "prices": dict(sorted(catalogue.prices.items())),
        "pricedAt": _seconds(catalogue.priced_at),
    }
    if catalogue.reported:
        quotas = sorted(catalogue.reported.items())
        values["reported"] = {source: [quota.limit, _seconds(quota.at)] for source, quota in quotas}
    text = json.dumps(values, separators=(",", ":"))
    return keyed(CATALOGUE, catalogue=zlib.compress(text.encode(), level=9))


def catalogue_of(row: Row | None) -> Catalogue:
    """Return the catalogue in the row, an empty one without a row that can be read."""
    return read_or(row, _catalogue_of, Catalogue())


def _catalogue_of(row: Row) -> Catalogue:
    values = json.loads(inflate(row["catalogue"]["B"], MAX_TEXT_BYTES))
    types = [value_of(InstanceType, kind) for kind in values["types"]]
    return Catalogue(
        learned={kind.name: kind for kind in types},
        quotas=values["quotas"],
        learned_at=_time(values["at"]),
        # Rows of earlier releases have no prices.
        prices=values.get("prices", {}),
        priced_at=_time(values.get("pricedAt")),
        reported={
            source: ReportedQuota(limit, datetime.fromtimestamp(at, UTC))
            for source, (limit, at) in values.get("reported", {}).items()
        },
    )


def cursors_row(cursors: Cursors) -> Row:
    """Return the row of the placement policies' cursors."""
    return keyed(CURSORS, cursors=json.dumps(document(cursors, sparse=True), separators=(",", ":")))


def cursors_of(row: Row | None) -> Cursors:
    """Return the cursors in the row, initial ones without a row that can be read."""
    return read_or(row, lambda found: value_of(Cursors, json.loads(found["cursors"]["S"])), Cursors())


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
