"""Meaning of image requests: those that could never work are refused, with the field named."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.images.domain.request import (
    Compression,
    Distillation,
    ImageRequest,
    Output,
    Processor,
    ProcessorType,
    StreamOutput,
    TileFormat,
    problems,
)

ROLE = "arn:aws:iam::111122223333:role/reader"
STREAM = "arn:aws-us-gov:kinesis:us-gov-west-1:111122223333:stream/detections"
SHIPS = Processor(name="ships")
GOOD = ImageRequest(job_id="harbour-7", image_url="s3://images/harbour/7.tif", processor=SHIPS)


def fields(**changes):
    return [problem.field for problem in problems(replace(GOOD, **changes))]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"image_url": "https://images.example/7.ntf?version=2"},
        {"image_url": "http://localhost:8000/a b.tif"},
        {"image_url": "s3://my_old.Bucket/k"},
        {"processor": Processor(name="http://localhost:8080/invoke", type_=ProcessorType.HTTP)},
        {"processor": Processor(name="HTTPS://models.example")},
        {"processor": Processor(name="ships", assumed_role=ROLE), "image_read_role": ROLE},
        {"processor": Processor(name="ships", assumed_role=""), "image_read_role": ""},
        {"tile_size": 1, "tile_overlap": 0},
        {"tile_size": 1_024, "tile_overlap": 1_023},
        {"outputs": (Output(bucket="results", prefix="a/b/"), Output(bucket="results2"))},
        {"outputs": (Output(bucket="results", prefix="\u00fc" * 256),) * 10},
        {"parameters": {"CustomAttributes": "~" * 1024, "EnableExplanations": True, "a": 1e9}},
        {"outputs": (Output(bucket="arn:aws:s3:us-east-1:111122223333:accesspoint/results"),)},
        {"outputs": (Output(bucket="results"), StreamOutput(stream="a.b_c-1", batch_size=1, role=ROLE))},
        {"outputs": (StreamOutput(stream=STREAM), Output(bucket="results"))},
        {"distillation": Distillation(iou=0.0, skip_box=0.0, sigma=5.0)},
        {"distillation": Distillation(iou=1.0, skip_box=1.0)},
    ],
)
def test_valid_values_are_accepted(changes):
    assert fields(**changes) == []


@pytest.mark.parametrize(("length", "wrong"), [(600, []), (601, ["imageProcessor.name"])])
def test_a_models_url_is_no_longer_than_its_pool_can_be_called(length, wrong):
    url = "https://models.example/".ljust(length, "m")
    assert fields(processor=Processor(name=f"{url}?token={'t' * 500}")) == wrong


@pytest.mark.parametrize(
    "name", ["", "job_7", "a b", "a+b", "-a", "a-", "a" * 64, "a-qstamp-2", "a:b", "\u00e9", "a\n"]
)
def test_the_jobs_name_must_be_one_that_a_job_can_have(name):
    assert fields(job_id=name) == ["jobId"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "harbour.tif",
        "/vsicurl/http://a/b",
        "file:///etc/passwd",
        "ftp://a/b",
        "s3://images",
        "s3://images/",
        "s3:///key",
        "https:///a",
        "https://[::1/a",
        "s3://images/a\nb",
        "s3://images/a\0b",
    ],
)
def test_an_image_is_in_s3_or_behind_http(url):
    assert fields(image_url=url) == ["imageUrls[0]"]


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("", ProcessorType.SAGEMAKER),
        ("ships/2", ProcessorType.SAGEMAKER),
        ("a" * 64, ProcessorType.SAGEMAKER),
        ("ftp://models.example", ProcessorType.SAGEMAKER),
        ("ships", ProcessorType.HTTP),
        ("http://", ProcessorType.HTTP),
        ("https://", ProcessorType.SAGEMAKER),
    ],
)
def test_a_model_is_an_endpoints_name_or_a_url(name, type_):
    assert fields(processor=Processor(name=name, type_=type_)) == ["imageProcessor.name"]


@pytest.mark.parametrize("role", ["reader", "arn:", "arn:aws:iam::1:role/reader", "arn:aws:iam::111122223333:user/me"])
def test_roles_are_arns_of_roles(role):
    assert fields(image_read_role=role) == ["imageReadRole"]
    assert fields(processor=replace(SHIPS, assumed_role=role)) == ["imageProcessor.assumedRole"]
    assert fields(outputs=(Output(bucket="results"), Output(bucket="results", role=role))) == ["outputs[1].role"]


@pytest.mark.parametrize(
    ("size", "overlap", "field"),
    [
        (0, 0, "imageProcessorTileSize"),
        (-5, 0, "imageProcessorTileSize"),
        (1_024, -1, "imageProcessorTileOverlap"),
        (1_024, 1_024, "imageProcessorTileOverlap"),
        (1_024, 10**50, "imageProcessorTileOverlap"),
    ],
)
def test_tiles_have_pixels_that_they_do_not_share(size, overlap, field):
    assert fields(tile_size=size, tile_overlap=overlap) == [field]


def test_a_tile_is_compressed_as_its_format_can_be():
    refused = {
        (form, compression)
        for form in TileFormat
        for compression in Compression
        if fields(tile_format=form, tile_compression=compression)
    }
    assert refused == {(TileFormat.NITF, Compression.LZW), (TileFormat.GEOTIFF, Compression.J2K)}
    assert fields(tile_compression=Compression.LZW) == ["imageProcessorTileCompression"]


def test_properties_for_all_features_do_not_say_where_or_what_each_of_them_is():
    """With one `imageBBox` for all, all would be duplicates of one."""
    assert fields(feature_properties=({"modelMetadata": {"a": 1}}, {"imageBBox": [0, 0, 9, 9], "note": 1})) == [
        "featureProperties[1].imageBBox"
    ]
    for name in ("imageGeometry", "bounds_imcoords", "geom_imcoords", "detection", "featureClasses", "image_id"):
        assert fields(feature_properties=({name: 5},)) == [f"featureProperties[0].{name}"]


def test_buckets_are_named_without_their_prefix():
    outputs = (Output(bucket="results"), Output(bucket="results/a"), Output(bucket="s3://results"), Output(bucket=""))
    assert fields(outputs=outputs) == [f"outputs[{index}].bucket" for index in (1, 2, 3)]


@pytest.mark.parametrize(
    ("stream", "field"),
    [
        (StreamOutput(stream=""), "stream"),
        (StreamOutput(stream="a/b"), "stream"),
        (StreamOutput(stream="a" * 129), "stream"),
        (StreamOutput(stream=f"{STREAM}/consumer/c"), "stream"),
        (StreamOutput(stream="a", batch_size=0), "batchSize"),
        (StreamOutput(stream="a", role="writer"), "assumedRole"),
    ],
)
def test_streams_are_names_or_arns_that_take_batches(stream, field):
    assert fields(outputs=(Output(bucket="results"), stream)) == [f"outputs[1].{field}"]


def test_a_stream_needs_a_bucket_that_keeps_what_is_merged_later():
    assert fields(outputs=(StreamOutput(stream="a"),)) == ["outputs"]


@pytest.mark.parametrize(
    ("rules", "member"),
    [
        (Distillation(iou=-0.1), "iouThreshold"),
        (Distillation(iou=1.1), "iouThreshold"),
        (Distillation(iou=math.nan), "iouThreshold"),
        (Distillation(skip_box=2.0), "skipBoxThreshold"),
        (Distillation(sigma=0.0), "sigma"),
        (Distillation(sigma=math.inf), "sigma"),
    ],
)
def test_thresholds_are_parts_of_a_whole(rules, member):
    assert fields(distillation=rules) == [f"postProcessing[0].algorithm.{member}"]


def test_everything_that_is_wrong_is_named():
    wrong = fields(job_id="", image_url="", processor=Processor(name=""), tile_size=0, outputs=(Output(bucket=""),))
    assert wrong == ["jobId", "imageUrls[0]", "imageProcessor.name", "imageProcessorTileSize", "outputs[0].bucket"]


@given(st.text(max_size=80), st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_taken_or_refused_with_words(name, url, model):
    request = replace(GOOD, job_id=name, image_url=url, processor=Processor(name=model), image_read_role=url)
    assert all(problem.message and problem.hint for problem in problems(request))


@pytest.mark.parametrize(
    ("parameters", "variant"),
    [({}, None), ({"TargetVariant": ""}, None), ({"TargetVariant": None}, None), ({"TargetVariant": "blue"}, "blue")],
)
def test_an_empty_target_variant_is_none(parameters, variant):
    assert replace(GOOD, parameters=parameters).target_variant == variant


@pytest.mark.parametrize(
    ("processor", "http"),
    [
        (SHIPS, False),
        (Processor(name="httpserver"), False),
        (Processor(name="HTTP://models.example"), True),
        (Processor(name="https://models.example", type_=ProcessorType.SAGEMAKER), True),
        (Processor(name="models.example", type_=ProcessorType.HTTP), True),
    ],
)
def test_a_url_is_called_whatever_the_type_says(processor, http):
    assert processor.is_http is http
