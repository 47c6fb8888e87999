"""The schema version of stored rows: which rows this release reads, and how it upgrades older ones.

Every row has the schema version of its writer in `schema`; a row without it is of schema 0. The `schema` of
`STATE` / `control` is that of the table: each pass raises it to its own, and refuses a newer one. Rows of older
schemas are upgraded as they are read, and stored in the present form when they are next written. Additions need no new
version: `docs/reference/compatibility.md` has the rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trainmaster.adapters.dynamodb.rows import STATE, Row
from trainmaster.domain.errors import UnsupportedSchema

ATTRIBUTE = "schema"
Migration = Callable[[Row], Row]
"""Returns a row of one schema in the form of the next one."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The schemas that a release reads and writes.

    Attributes:
        version: the version that it writes, the newest that it reads.
        migrations: by older version that it reads, the upgrade to the next version.
    """

    version: int
    migrations: Mapping[int, Migration] = field(default_factory=dict)

    def upgraded(self, row: Row) -> Row:
        """Return a row that was read in the present form; a damaged one is left to its reader.

        Raises `UnsupportedSchema`.
        """
        if row.get(ATTRIBUTE) == {"N": str(self.version)}:
            return row
        try:
            return self._upgraded(row)
        except UnsupportedSchema:
            raise
        except Exception:  # noqa: BLE001 -- of the version, or of a migration, for values that no release has written
            return row

    def _upgraded(self, row: Row) -> Row:
        stored = version_of(row)
        if stored == self.version:
            return row
        if stored < 0:
            raise ValueError("no release has written this version")
        if stored > self.version:
            raise newer(stored, self.version)
        for version in range(stored, self.version):
            if version not in self.migrations:
                raise UnsupportedSchema(
                    f"The queue's table has rows of schema {stored}, which this release cannot read. "
                    "First deploy a release that reads it (docs/reference/compatibility.md)."
                )
            row = self.migrations[version](row)
        return row

    def stamped(self, row: Row) -> Row:
        """Return a row to write, with this version."""
        return {**row, ATTRIBUTE: {"N": str(self.version)}}


def version_of(row: Row) -> int:
    """Return the schema version of a row."""
    return int(row[ATTRIBUTE]["N"]) if ATTRIBUTE in row else 0


def newer(stored: int, known: int) -> UnsupportedSchema:
    """Return the error for data of a newer schema."""
    return UnsupportedSchema(
        f"The queue's table has schema {stored}, and this release of Trainmaster reads schemas up to {known}. "
        "Deploy the newer release again; docs/reference/compatibility.md explains schemas."
    )


def _name_pools_members(row: Row) -> Row:
    """Write the pools of the settings as objects: before version 0.2 each was `[name, cap, countExternal?]`."""
    if (row["pk"]["S"], row["sk"]["S"]) != (STATE, "pools") or "pools" not in row:
        return row
    listed = json.loads(row["pools"]["S"])
    members = ("name", "cap", "countExternal")
    pools = [dict(zip(members, pool, strict=False)) if isinstance(pool, list) else pool for pool in listed]
    return {**row, "pools": {"S": json.dumps(pools, separators=(",", ":"))}}


SCHEMA = Schema(2, {0: _name_pools_members, 1: lambda row: row})
"""The schema of this release. tests/fixtures has a table of every released version, and one of each older schema.

Schema 2 compresses texts with a dictionary; both forms are read alike.
"""
