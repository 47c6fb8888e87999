"""The schema version of the table: which rows are read, upgraded, refused, and what of a newer release is kept."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import table_scenario
from engines import ROOT, DynamoEngine
from table_fixtures import fixture_of, lacking, load, put_all, row_of_text, shape

import builders as b
from trainmaster.adapters.dynamodb.control.schema import SCHEMA, Schema
from trainmaster.adapters.dynamodb.rows import keyed
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.errors import UnsupportedSchema
from trainmaster.domain.jobs import lifecycle

TABLES = sorted((ROOT / "tests" / "fixtures" / "tables").glob("*.json"))
ALL_TABLES = sorted((ROOT / "tests").glob("**/fixtures/tables/*.json"))
RENEW = "run scripts/table_fixture.py, which writes the table of this release"


def table_of(engine: DynamoEngine, schema: Schema = SCHEMA) -> Table:
    return Table(engine.client, engine.name, lambda _: None, schema=schema)


def control(engine: DynamoEngine, **attributes: int) -> None:
    put_all(engine.client, engine.name, [keyed(("STATE", "control"), **attributes)])


# ---------------------------------------------------------------- tables of releases


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_the_table_of_every_release_is_read_as_that_release_read_it(moto_engine, path):
    fixture = load(moto_engine.client, moto_engine.name, path)
    found = table_scenario.everything(table_of(moto_engine))
    assert lacking(fixture["reads"], json.loads(json.dumps(found))) == []


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_jobs_of_the_table_of_every_release_go_on(moto_engine, path):
    load(moto_engine.client, moto_engine.name, path)
    store = table_scenario.open_store(table_of(moto_engine))
    snapshot = store.begin_pass()
    assert snapshot.active
    assert snapshot.waiting
    for job in snapshot.waiting:
        assert store.transition([(job, lifecycle.hold(job, b.at(99), "ada"))], fence=snapshot.pass_number)
        assert store.find(job.name).held_by == "ada"


def test_the_table_of_this_release_has_every_row_attribute_and_member_that_it_writes():
    committed = {name for row in json.loads(TABLES[-1].read_text())["rows"] for name in shape_of_text(row)}
    written = {name for row in fixture_of(table_scenario)["rows"] for name in shape_of_text(row)}
    assert written <= committed, RENEW


def shape_of_text(row):
    return shape(row_of_text(row))


def test_every_row_of_the_page_about_the_table_is_in_the_table_of_a_release():
    """A kind of row that a branch adds is in docs/reference/table.md, and needs a line in the scenarios."""
    page = (ROOT / "docs" / "reference" / "table.md").read_text()
    described = re.findall(
        r"^\| `([^`|]+)` \| ((?:`[^`|]+`(?:, )?)+) \|", page.partition("## Attributes")[0], re.MULTILINE
    )
    patterns = {(pk, sk) for pk, keys in described for sk in re.findall("`([^`]+)`", keys)}
    assert len(patterns) > 20
    rows = [row for path in ALL_TABLES for row in json.loads(path.read_text())["rows"]]
    keys = [(row["pk"]["S"], row["sk"]["S"]) for row in rows]
    absent = {each for each in patterns - {("pk", "sk")} if not any(_matches(each, key) for key in keys)}
    assert absent == set(), f"add them to a scenario (tests/contract/table_scenario.py) and {RENEW}"


def _matches(pattern: tuple[str, str], key: tuple[str, str]) -> bool:
    wanted = (re.sub("<[^>]+>", "[^ ]+", re.escape(each).replace(r"\ ", " ")) for each in pattern)
    return all(re.fullmatch(each, part.replace(" ", "_")) for each, part in zip(wanted, key, strict=True))


def test_every_row_has_the_schema_of_its_writer():
    rows = json.loads(TABLES[-1].read_text())["rows"]
    assert {row["schema"]["N"] for row in rows} == {str(SCHEMA.version)}


# ---------------------------------------------------------------- other versions


def test_a_pass_marks_the_table_with_its_schema_in_the_write_that_counts_it(moto_engine):
    control(moto_engine, **{"pass": 6})
    assert moto_engine.open().begin_pass().pass_number == 7
    assert moto_engine.rows()[0]["schema"] == {"N": str(SCHEMA.version)}


def test_a_table_of_a_newer_schema_is_refused_and_not_touched(moto_engine):
    control(moto_engine, **{"pass": 6, "schema": SCHEMA.version + 1})
    store, before = moto_engine.open(), moto_engine.rows()
    for verb in (store.begin_pass, store.read_snapshot, store.current_pass, store.pause):
        with pytest.raises(UnsupportedSchema, match=f"has schema {SCHEMA.version + 1}.*schemas up to {SCHEMA.version}"):
            verb()
    with pytest.raises(UnsupportedSchema):
        store.set_pause(None)
    assert moto_engine.rows() == before


def test_a_row_of_a_newer_schema_is_refused_by_a_process_that_runs_since_before(moto_engine):
    store, job = moto_engine.open(), b.a_job("job1")
    store.submit(job, b.a_request("job1"))
    newer = replace(table_of(moto_engine), schema=Schema(SCHEMA.version + 1, {SCHEMA.version: lambda row: row}))
    assert table_scenario.open_store(newer).transition([(job, replace(job, priority=3, version=2))])
    with pytest.raises(UnsupportedSchema):
        store.find("job1")
    # The job moved, so its old place is empty, and the version guards it besides.
    assert not store.transition([(job, lifecycle.hold(job, b.NOW, "ada"))])


def test_a_row_of_an_older_schema_is_upgraded_as_it_is_read_and_rewritten_with_the_next_change(moto_engine):
    old = keyed(("STATE", "pools"), pools=f'[["{b.P5}", 2], ["{b.G5}", 8, false]]', version=7, parameter="two")
    put_all(moto_engine.client, moto_engine.name, [old])
    store = moto_engine.open()
    pools = b.pools_of(b.a_pool(b.P5, 2, count_external=True), b.a_pool(b.G5, 8))
    assert store.settings().pools == pools
    assert moto_engine.rows() == [old], "reading writes nothing"
    store.set_settings(policy=store.settings().policy)
    assert moto_engine.rows()[0]["schema"] == {"N": str(SCHEMA.version)}
    assert [each["name"] for each in json.loads(moto_engine.rows()[0]["pools"]["S"])] == [b.P5, b.G5]
    assert store.settings().pools == pools


def test_migrations_follow_one_another(moto_engine):
    def renamed(before, after):
        return lambda row: {after if name == before else name: value for name, value in row.items()}

    newest = Schema(3, {0: renamed("a", "b"), 1: renamed("b", "c"), 2: renamed("c", "d")})
    put_all(moto_engine.client, moto_engine.name, [keyed(("X", "0"), a="0"), keyed(("X", "1"), b="1", schema=1)])
    rows = list(table_of(moto_engine, newest).all_rows("X"))
    assert [row["d"] for row in rows] == [{"S": "0"}, {"S": "1"}]
    assert newest.stamped(rows[0])["schema"] == {"N": "3"}


def test_an_older_schema_that_no_migration_names_is_refused(moto_engine):
    put_all(moto_engine.client, moto_engine.name, [keyed(("X", "1"), b="1", schema=1)])
    with pytest.raises(UnsupportedSchema, match="rows of schema 1, which this release cannot read"):
        table_of(moto_engine, Schema(3, {2: lambda row: row})).get(("X", "1"))


@pytest.mark.parametrize("version", [{"N": "-3"}, {"S": "x"}, {"N": "1.5"}, {"NULL": True}])
def test_a_version_that_no_release_has_written_is_left_to_the_reader_of_its_row(version):
    row = keyed(("JOB#a", "job"), jobName="a") | {"schema": version}
    assert SCHEMA.upgraded(row) == row
