"""Rows of image jobs of every release are read, and have every attribute and member that is written."""

from __future__ import annotations

import json

import image_table_scenario
import pytest
from engines import ROOT
from table_fixtures import fixture_of, lacking, load, row_of_text, shape

from trainmaster.adapters.dynamodb.table import Table

TABLES = sorted((ROOT / "tests" / "images" / "fixtures" / "tables").glob("*.json"))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_the_table_of_every_release_is_read_as_that_release_read_it(moto_engine, path):
    fixture = load(moto_engine.client, moto_engine.name, path)
    found = image_table_scenario.everything(Table(moto_engine.client, moto_engine.name, lambda _: None))
    assert lacking(fixture["reads"], json.loads(json.dumps(found))) == []


def test_the_table_of_this_release_has_every_row_attribute_and_member_that_it_writes():
    committed = {name for row in json.loads(TABLES[-1].read_text())["rows"] for name in shape(row_of_text(row))}
    written = {name for row in fixture_of(image_table_scenario)["rows"] for name in shape(row_of_text(row))}
    assert written <= committed, "run scripts/table_fixture.py, which writes the table of this release"
