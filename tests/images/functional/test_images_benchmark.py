"""The benchmark of image jobs at a small size: passes cost the same at every depth, starts share calls. Counts."""

from __future__ import annotations

import json
from functools import cache

import pytest
from benchmarks.images import scanning
from benchmarks.images.__main__ import main
from benchmarks.images.measuring import measure
from benchmarks.images.sheets import goals, sheets

from samples import sample
from trainmaster.domain.capacity.read_limits import FIRST_OF_FULL

RUNNING = 4

pytestmark = pytest.mark.usefixtures("quiet")


@cache
def measured(waiting, endpoints):
    return measure(waiting, endpoints, running=RUNNING)


def cost(figures):
    return {unit: figures[unit] for unit in ("read_units", "write_units", "calls")}


@pytest.mark.parametrize("endpoints", sample([1, 4]))
def test_w15_neither_passes_nor_starts_nor_ends_cost_more_where_more_wait(endpoints):
    few, many = (measured(waiting, endpoints) for waiting in (160, 640))
    for part in ("pass", "starts", "turn"):
        assert cost(few[part]) == cost(many[part]), part
    assert few["pass"]["decisions"] == FIRST_OF_FULL * endpoints == many["pass"]["decisions"]


def test_starts_are_a_call_each_and_one_for_all_and_read_nothing_but_their_pass():
    starts = measured(40, 1)["starts"]
    assert starts["write_units"] <= 6
    own = {name: step for name, step in starts["steps"].items() if name != "pass: fence and read"}
    assert sum(step["calls"] for step in own.values()) == RUNNING + 1
    assert sum(step["read_units"] for step in own.values()) == 0
    assert starts["refused"] == 0


def test_each_endpoint_with_waiting_jobs_costs_a_query_and_a_row():
    one, four = (measured(160, endpoints)["pass"] for endpoints in (1, 4))
    assert four["calls"] - one["calls"] == 3
    assert four["lanes"] == 4


def test_it_shows_and_writes_its_figures(tmp_path, capsys):
    path = tmp_path / "figures.json"
    sizes = ["--sizes", "40,80", "--endpoints", "1", "--running", str(RUNNING)]
    assert main([*sizes, "--json", str(path)]) == 0
    found = json.loads(path.read_text())
    assert [one["outstanding"] for one in found["sizes"]] == [40, 80]
    assert "ModelRunner" in capsys.readouterr().out
    for sheet in sheets(found):
        assert {len(row) for row in sheet.rows} == {len(sheet.columns)}


def test_a_goal_is_met_only_where_it_is():
    passed = {"read_units": 25, "write_units": 1, "calls": 5}
    sizes = [
        {"outstanding": depth, "endpoints": 1, "running": 100, "pass": passed, "starts": {"per_s": 150}}
        for depth in (100, 10_000)
    ]
    assert [row[-1] for row in goals(sizes)] == ["yes", "yes"]
    sizes[1] |= {"pass": {**passed, "read_units": 26}, "starts": {"per_s": 99.9}}
    assert [row[-1] for row in goals(sizes)] == ["NO", "NO"]


def test_modelrunners_scan_reads_every_row_of_its_table():
    assert (scanning.units(100), scanning.calls(100)) == (18, 1)
    # 71 MB: 67 whole pages and a rest.
    assert (scanning.units(100_000), scanning.calls(100_000)) == (17_359, 68)


def test_stock_modelrunner_has_at_most_its_look_ahead_in_its_table():
    assert [scanning.stock_rows(count) for count in (7, 50, 100_000)] == [7, 50, 50]
    start = scanning.start(50)
    assert (start.reads, start.writes) == (9, 1)
