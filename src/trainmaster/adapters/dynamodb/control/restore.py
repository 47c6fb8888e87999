"""The newest comparison of a restored table with SageMaker, as a row in a partition of its own."""

from __future__ import annotations

import json
import zlib

from trainmaster.adapters.dynamodb.encoding.compression import inflate
from trainmaster.adapters.dynamodb.rows import MAX_TEXT_BYTES, Key, Row, keyed
from trainmaster.domain.document import document, value_of
from trainmaster.domain.restore import Restore

RESTORE: Key = ("restore", "newest")


def restore_row(restore: Restore) -> Row:
    """Return its row."""
    text = json.dumps(document(restore, sparse=True), separators=(",", ":"))
    return keyed(RESTORE, restore=zlib.compress(text.encode(), level=9))


def restore_of(row: Row) -> Restore:
    """Return the comparison of the row."""
    return value_of(Restore, json.loads(inflate(row["restore"]["B"], MAX_TEXT_BYTES)))
