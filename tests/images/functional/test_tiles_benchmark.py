"""The benchmark of tiles at a small size: every run looks at all tiles, and goals are met only where they are."""

from __future__ import annotations

import pytest
from benchmarks.images.tile_image import make_image
from benchmarks.images.tile_runs import measured
from benchmarks.images.tiles import goals, sheets

COUNT = 3


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("image") / "large.tif"
    make_image(path, 1500)
    runs = {what: measured(what, path, COUNT) for what in ("worker", "rasterio", "stages")}
    return {"side": 1500, "image_mb": 3, "decode": measured("decode", path, 0), "runs": [{"features": 5, **runs}]}


def test_every_run_looks_at_all_tiles(found):
    (run,) = found["runs"]
    assert run["worker"]["tiles"] == run["rasterio"]["tiles"] == found["decode"]["tiles"] == 4
    assert all(spent >= 0 for spent in run["stages"].values())
    assert run["stages"]["read"] > 0


def test_every_row_has_a_cell_for_each_column(found):
    for sheet in sheets(found):
        assert {len(row) for row in sheet.rows} == {len(sheet.columns)}


def test_a_goal_is_met_only_where_it_is():
    worker = {"tiles": 400, "seconds": 10.0, "cpu_s": 16.0, "peak_mb": 300}
    assert [row[3] for row in goals([{"features": 5, "worker": worker}])] == ["yes", "yes"]
    assert [row[4] for row in goals([{"features": 5, "worker": worker}])] == ["50", ""]
    worker |= {"seconds": 14.0, "peak_mb": 350}
    assert [row[3] for row in goals([{"features": 5, "worker": worker}])] == ["NO", "NO"]
