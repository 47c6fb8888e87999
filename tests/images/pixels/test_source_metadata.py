"""Features of a NITF name the category, title and time of its header."""

from __future__ import annotations

import pytest
from imaging_stage import written
from rasterio.io import MemoryFile

from spots import geotiff, picture, scattered
from trainmaster.images.domain.tiling import Cut
from trainmaster.images.pixels.reading.source_metadata import source_metadata

SIZE = (128, 96)
TIME = "19961217102630"
HEADER = {"ICAT": "SAR", "FTITLE": "AIRFIELD", "IDATIM": TIME}
SOURCE = {"category": "SAR", "sourceId": "AIRFIELD", "sourceDT": "1996-12-17T10:26:30Z"}


def source_of(body):
    with MemoryFile(body) as memory, memory.open() as image:
        return source_metadata(image)


def test_every_feature_has_what_the_header_says(tmp_path, play_of, web):
    web.files["a.ntf"] = written(tmp_path / "a.ntf", picture(*SIZE, scattered(*SIZE, 2)), "NITF", **HEADER)
    result = play_of(f"{web.url}/a.ntf", SIZE, Cut(region=SIZE, tile=SIZE, overlap=(0, 0))).run_all()
    assert [each["properties"]["sourceMetadata"] for each in result["features"]] == [
        [{"location": f"{web.url}/a.ntf", "format": "NITF", **SOURCE}]
    ] * 2


@pytest.mark.parametrize(
    ("time", "told"),
    [
        (TIME, "1996-12-17T10:26:30Z"),
        ("17102630ZDEC96", "1996-12-17T10:26:30Z"),
        ("17102630ZDEC01", "2001-12-17T10:26:30Z"),
        ("19961317102630", None),
        ("199612--------", None),
        ("17102630ZXYZ96", None),
        (" " * 14, None),
    ],
)
def test_times_of_both_editions_are_read_and_incomplete_ones_are_not_guessed(tmp_path, time, told):
    body = written(tmp_path / "a.ntf", picture(*SIZE, []), "NITF", **HEADER)
    assert body.count(TIME.encode()) == 1
    assert source_of(body.replace(TIME.encode(), time.encode())) == SOURCE | {"sourceDT": told}


def test_a_blank_title_stays_blank_as_in_modelrunner(tmp_path):
    assert source_of(written(tmp_path / "a.ntf", picture(*SIZE, []), "NITF"))["sourceId"] == ""


def test_images_of_other_formats_have_no_such_header():
    assert source_of(geotiff(picture(*SIZE, []))) == {}
