"""What was learned of instance types, and where placement has got to: two small rows beside the settings.

Types are kept only where they differ from what ships with us, so that the row stays small. It must not decide.
"""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime

from trainmaster.adapters.dynamodb.rows import STATE, Key, Row, keyed
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.document import document, value_of
from trainmaster.domain.plan import Cursors

CATALOGUE: Key = (STATE, "catalogue")
CURSORS: Key = (STATE, "cursors")


def catalogue_row(catalogue: Catalogue) -> Row:
    """The row of what was learned."""
    types = {name: kind for name, kind in catalogue.learned.items() if kind != SHIPPED.get(name)}
    values = {
        "types": [document(kind, sparse=True) for _, kind in sorted(types.items())],
        "quotas": dict(sorted(catalogue.quotas.items())),
        "at": _seconds(catalogue.learned_at),
        "prices": dict(sorted(catalogue.prices.items())),
        "pricedAt": _seconds(catalogue.priced_at),
    }
    text = json.dumps(values, separators=(",", ":"))
    return keyed(CATALOGUE, catalogue=zlib.compress(text.encode(), level=9))


def catalogue_of(row: Row | None) -> Catalogue:
    """What such a row says; nothing learned where there is none."""
    if row is None:
        return Catalogue()
    values = json.loads(zlib.decompress(bytes(row["catalogue"]["B"])))
    types = [value_of(InstanceType, kind) for kind in values["types"]]
    return Catalogue(
        learned={kind.name: kind for kind in types},
        quotas=values["quotas"],
        learned_at=_time(values["at"]),
        # A row of an earlier release has none.
        prices=values.get("prices", {}),
        priced_at=_time(values.get("pricedAt")),
    )


def cursors_row(cursors: Cursors) -> Row:
    """The row of where the placement policies have got to."""
    return keyed(CURSORS, cursors=json.dumps(document(cursors, sparse=True), separators=(",", ":")))


def cursors_of(row: Row | None) -> Cursors:
    """What such a row says; the beginning where there is none."""
    return Cursors() if row is None else value_of(Cursors, json.loads(row["cursors"]["S"]))


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
