"""Models' detections in tiles become features of the image: shapes of every convention, moved and located."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rasterio.io import MemoryFile
from rasterio.warp import transform

from spots import NORTH, STEP, UTM, WEST, geotiff, picture
from trainmaster.domain.errors import RequestRefused
from trainmaster.images.domain.tiling import Window
from trainmaster.images.pixels.features.features import Origin, box_of, class_and_score, placed
from trainmaster.images.pixels.reading.georeference import georeference_of

TILE = Window(100, 50, 64, 64)
ORIGIN = Origin(job="harbour-7", url="s3://images/a.tif", format_="GTiff", time="2026-11-21T00:00:00Z")


@pytest.fixture(scope="module")
def where():
    with MemoryFile(geotiff(picture(300, 200, []))) as memory, memory.open() as image:
        return georeference_of(image)


def one(properties, where=None, **feature):
    (found,) = placed([{"type": "Feature", "geometry": None, "properties": properties, **feature}], TILE, where, ORIGIN)
    return found


@pytest.mark.parametrize(
    ("given", "shape", "box"),
    [
        ({"imageGeometry": {"type": "Point", "coordinates": [5, 6]}}, "Point", [105, 56, 105, 56]),
        ({"imageGeometry": {"type": "LineString", "coordinates": [[0, 0], [4, 8]]}}, "LineString", [100, 50, 104, 58]),
        (
            {"imageGeometry": {"type": "Polygon", "coordinates": [[[0, 0], [9, 2], [5, 9], [0, 0]]]}},
            "Polygon",
            [100, 50, 109, 59],
        ),
        ({"imageBBox": [1, 2, 3, 4]}, "Polygon", [101, 52, 103, 54]),
        ({"bounds_imcoords": [1, 2, 3, 4]}, "Polygon", [101, 52, 103, 54]),
        ({"geom_imcoords": [[0, 0], [9, 0], [9, 9], [0, 0]]}, "Polygon", [100, 50, 109, 59]),
        ({"detection": {"type": "Point", "pixelCoordinates": [7, 8]}}, "Point", [107, 58, 107, 58]),
    ],
)
def test_every_convention_of_shapes_is_understood_and_moved_into_the_image(given, shape, box):
    properties = one(given)["properties"]
    assert properties["imageGeometry"]["type"] == shape
    assert properties["imageBBox"] == box


def test_a_box_beside_a_shape_stays_the_models_own():
    given = {"imageGeometry": {"type": "Point", "coordinates": [5, 5]}, "imageBBox": [0, 0, 10, 10]}
    properties = one(given)["properties"]
    assert properties["imageGeometry"]["coordinates"] == [105, 55]
    assert properties["imageBBox"] == [100, 50, 110, 60]


def test_older_properties_are_moved_as_well():
    given = {"bounds_imcoords": [1, 2, 3, 4], "detection": {"type": "Point", "pixelCoordinates": [7, 8]}}
    properties = one(given)["properties"]
    assert properties["bounds_imcoords"] == [101, 52, 103, 54]
    assert properties["detection"]["pixelCoordinates"] == [107, 58]


def test_the_models_properties_are_kept():
    given = {"imageBBox": [1, 2, 3, 4], "feature_types": {"ship": 0.9}}
    one(given)
    assert given == {"imageBBox": [1, 2, 3, 4], "feature_types": {"ship": 0.9}}


def test_old_feature_types_become_classes():
    properties = one({"imageBBox": [1, 2, 3, 4], "feature_types": {"ship": 0.7, "car": 0.2}})["properties"]
    assert properties["featureClasses"] == [{"iri": "ship", "score": 0.7}, {"iri": "car", "score": 0.2}]
    assert "feature_types" not in properties


def test_the_shape_on_earth_has_the_type_and_the_place_of_the_shape_in_the_image(where):
    found = one({"imageGeometry": {"type": "Point", "coordinates": [5.5, 6.25]}}, where)
    assert found["geometry"]["type"] == "Point"
    x, y = transform("EPSG:4326", UTM, *([each] for each in found["geometry"]["coordinates"]))
    assert (x[0], y[0]) == pytest.approx((WEST + 105.5 * STEP, NORTH - 56.25 * STEP), abs=0.001)


def test_features_without_a_shape_are_kept_without_a_position(where):
    found = one({"note": "fog"}, where)
    assert found["geometry"] is None
    assert box_of(found) is None
    assert found["properties"]["note"] == "fog"


@pytest.mark.parametrize(
    "given",
    [
        {"imageGeometry": {"type": "Blob", "coordinates": [1, 2]}},
        {"imageGeometry": {"type": "Point", "coordinates": ["a", "b"]}},
        {"imageBBox": [1, 2, 3]},
        {"imageBBox": "everywhere"},
        {"bounds_imcoords": [1, 2, 3, float("inf")]},
        {"geom_imcoords": [[1, 2]]},
        {"imageGeometry": 7},
        {"imageGeometry": {"type": "Polygon", "coordinates": []}},
        {"imageBBox": [1, 2, 3, 10**400]},
        [["imageBBox"]],
        7,
    ],
)
def test_a_shape_that_is_none_fails_the_tile(given):
    with pytest.raises(RequestRefused, match="invalid shape"):
        one(given)


@pytest.mark.parametrize(
    "given", [{"featureClasses": 7}, {"featureClasses": [{"score": "high"}]}, {"feature_types": {"ship": [1]}}]
)
def test_classes_that_are_none_fail_the_tile_and_not_the_merging_of_all(given):
    with pytest.raises(RequestRefused, match="invalid classes"):
        one({"imageBBox": [1, 2, 3, 4], **given})


def test_a_geometry_that_is_none_fails_the_tile_where_it_would_be_kept(where):
    with pytest.raises(RequestRefused, match="geometry that is not an object"):
        one({}, geometry=7)
    assert one({"imageBBox": [1, 2, 3, 4]}, where, geometry=7)["geometry"]["type"] == "Polygon"


def test_the_likeliest_class_counts_and_equals_by_name():
    classes = [{"iri": "b", "score": 0.5}, {"iri": "a", "score": 0.5}, {"iri": "c", "score": 0.1}, "nonsense"]
    assert class_and_score({"properties": {"featureClasses": classes}}) == ("a", 0.5)
    assert class_and_score({"properties": {}}) == ("", 1.0)
    unknown = [{"iri": "a", "score": None}, {"iri": "b", "score": 0.5}]
    assert class_and_score({"properties": {"featureClasses": unknown}}) == ("a", 1.0), "as without a score"


def test_a_presigned_urls_signature_stands_in_no_result():
    signed = replace(ORIGIN, url="https://user:s3cr3t@images.example/a.tif?X-Amz-Signature=s3cr3t")
    (found,) = placed([{"properties": {"imageBBox": [1, 2, 3, 4]}}], TILE, None, signed)
    assert found["properties"]["image_id"] == "harbour-7:https://images.example/a.tif"
    assert "s3cr3t" not in str(found)
