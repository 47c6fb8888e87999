"""Tables as JSON documents: made from a scenario, and loaded into an engine."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
from moto import mock_aws

from trainmaster.adapters.dynamodb.control.schema import SCHEMA
from trainmaster.adapters.dynamodb.encoding.compression import inflate
from trainmaster.adapters.dynamodb.rows import MAX_TEXT_BYTES
from trainmaster.adapters.dynamodb.table import Table
from world import make_table

Row = dict[str, Any]
NAME = "fixture"
RELEASE = "0.2.0"
"""The release whose tables the script writes."""


def fixture_of(scenario: ModuleType) -> dict[str, Any]:
    """Return the table that a scenario writes, and what the stores read from it."""
    with mock_aws():
        client = boto3.session.Session().client(
            "dynamodb", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
        )
        make_table(client, NAME)
        table = Table(client, NAME, lambda _: None)
        scenario.play(table)
        rows = rows_of(client, NAME)
        reads = scenario.everything(table)
        client.close()
    return {"schema": SCHEMA.version, "rows": [_text_row(row) for row in rows], "reads": reads}


def text_of(fixture: dict[str, Any]) -> str:
    """Return a fixture as it is committed: one row a line."""
    rows = ",\n".join(json.dumps(row, sort_keys=True) for row in fixture["rows"])
    reads = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(value, sort_keys=True)}" for name, value in fixture["reads"].items()
    )
    return f'{{"schema": {fixture["schema"]},\n"rows": [\n{rows}\n],\n"reads": {{\n{reads}\n}}}}\n'


def rows_of(client: Any, name: str) -> list[Row]:
    """Return all rows of a table, by key."""
    pages = client.get_paginator("scan").paginate(TableName=name, ConsistentRead=True)
    return sorted((row for page in pages for row in page["Items"]), key=lambda row: (row["pk"]["S"], row["sk"]["S"]))


def load(client: Any, name: str, path: Path) -> dict[str, Any]:
    """Write the rows of a fixture into a table; return the fixture with its rows as DynamoDB has them."""
    fixture: dict[str, Any] = json.loads(path.read_text())
    fixture["rows"] = [row_of_text(row) for row in fixture["rows"]]
    put_all(client, name, fixture["rows"])
    return fixture


def put_all(client: Any, name: str, rows: Iterable[Row]) -> None:
    """Write rows as they are."""
    for row in rows:
        client.put_item(TableName=name, Item=row)


def lacking(expected: Any, found: Any, where: str = "") -> list[str]:
    """Return the places where `found` differs from `expected`; members that only `found` has are additions."""
    if isinstance(expected, dict) and isinstance(found, dict):
        missing = [f"{where}.{key} is missing" for key in expected.keys() - found.keys()]
        common = expected.keys() & found.keys()
        return [*missing, *(each for key in common for each in lacking(expected[key], found[key], f"{where}.{key}"))]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [each for number, pair in pairs for each in lacking(*pair, f"{where}[{number}]")]
    return [] if expected == found else [f"{where} was {expected!r} and is {found!r}"]


def shape(row: Row) -> set[str]:
    """Return the kind of a row, its attributes, and the members of their JSON documents at every depth."""
    names = {kind_of(row)}
    for name, attribute in row.items():
        names |= {f"{kind_of(row)} {name}{member}" for member in _members(_document(attribute))} | {
            f"{kind_of(row)} {name}"
        }
    return names


def kind_of(row: Row) -> str:
    """Return the beginning of a row's key that tells its kind."""
    partition, sort_key = row["pk"]["S"], row["sk"]["S"]
    where = partition.partition("#")[0]
    return f"{where} {re.match('#?[a-z]*', sort_key)[0] if where not in _NAMED else ''}"


_NAMED = frozenset({"WAIT", "HELD", "AFTER", "endpoints"})
"""Partitions in which names follow at once."""


def _document(attribute: dict[str, Any]) -> Any:
    """Return the JSON in an attribute; None if it has none."""
    (kind, value), *_ = attribute.items()
    try:
        text = inflate(value, MAX_TEXT_BYTES).decode("utf-8", "surrogatepass") if kind == "B" else value
        return json.loads(text) if kind != "N" else None
    except ValueError:
        return None


def _members(value: Any) -> set[str]:
    if isinstance(value, list):
        return {f"[]{member}" for each in value for member in _members(each)}
    if not isinstance(value, dict):
        return set()
    return {f".{key}{member}" for key, each in value.items() for member in ("", *_members(each))}


def _text_row(row: Row) -> Row:
    return {name: _text_value(*next(iter(value.items()))) for name, value in row.items()}


def _text_value(kind: str, value: Any) -> dict[str, str]:
    return {kind: base64.b64encode(bytes(value)).decode() if kind == "B" else value}


def row_of_text(row: Row) -> Row:
    """Return a row of a fixture as DynamoDB has it."""
    return {
        name: {kind: base64.b64decode(value) if kind == "B" else value for kind, value in attribute.items()}
        for name, attribute in row.items()
    }
