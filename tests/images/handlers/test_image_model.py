"""Requests for image jobs as they travel: what ModelRunner takes is taken, and every refusal names its field."""

from __future__ import annotations

import json

import pytest

from doc_blocks import blocks
from image_poison import POISON, SQUARE
from image_world import BUCKET, an_image_request
from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.request import (
    Compression,
    Distillation,
    ImageRequest,
    Output,
    Processor,
    ProcessorType,
    ResultKey,
    StreamOutput,
    Suppression,
    TileFormat,
)
from trainmaster.images.handlers.models import read_request

ROLE = "arn:aws:iam::222222222222:role/model"
READER = "arn:aws:iam::222222222222:role/reader"
HERE = "tests/images/handlers/test_image_model.py"
WRITER = "arn:aws:iam::222222222222:role/writer"


def test_every_member_of_modelrunners_requests_is_read():
    reading = read_request(
        {
            "jobId": "harbour-7",
            "jobName": "ignored by ModelRunner",
            "imageUrls": [f"{BUCKET}small.tif"],
            "imageProcessor": {"name": "ships", "type": "SM_ENDPOINT", "assumedRole": ROLE},
            "imageProcessorParameters": {"TargetVariant": "blue", "TargetModel": "m.tar.gz"},
            "imageProcessorTileSize": 2048,
            "imageProcessorTileOverlap": 100,
            "imageProcessorTileFormat": "GTIFF",
            "imageProcessorTileCompression": "LZW",
            "imageReadRole": READER,
            "regionOfInterest": SQUARE,
            "outputs": [
                {"type": "S3", "bucket": "results", "prefix": "ships"},
                {"type": "S3", "bucket": "copies", "prefix": "", "role": WRITER},
                {"type": "Kinesis", "stream": "detections", "batchSize": 1000, "assumedRole": WRITER},
            ],
            "featureProperties": [{"mission": "m1"}],
            "postProcessing": [
                {
                    "step": "FEATURE_DISTILLATION",
                    "algorithm": {
                        "algorithmType": "SOFT_NMS",
                        "iouThreshold": 0.5,
                        "skipBoxThreshold": 0.01,
                        "sigma": 0.3,
                    },
                }
            ],
            "trainmaster": {"priority": 5, "share": "vision", "resultKey": "image"},
        }
    )
    assert reading.warnings == ()
    assert reading.request == ImageRequest(
        job_id="harbour-7",
        image_url=f"{BUCKET}small.tif",
        processor=Processor(name="ships", type_=ProcessorType.SAGEMAKER, assumed_role=ROLE),
        tile_size=2048,
        tile_overlap=100,
        tile_format=TileFormat.GEOTIFF,
        tile_compression=Compression.LZW,
        parameters={"TargetVariant": "blue", "TargetModel": "m.tar.gz"},
        image_read_role=READER,
        region_of_interest=SQUARE,
        outputs=(
            Output(bucket="results", prefix="ships"),
            Output(bucket="copies", role=WRITER),
            StreamOutput(stream="detections", batch_size=1000, role=WRITER),
        ),
        result_key=ResultKey.IMAGE,
        feature_properties=({"mission": "m1"},),
        distillation=Distillation(algorithm=Suppression.SOFT_NMS, iou=0.5, skip_box=0.01, sigma=0.3),
        priority=5,
        share="vision",
    )


def test_absent_or_null_members_have_the_defaults_of_modelrunners_page():
    """Its page promises tiles of 1024 pixels that overlap by 50; its code raises where they are missing."""
    least = {"jobId": "j", "imageUrls": ["https://host/a.ntf"], "imageProcessor": {"name": "https://host/model"}}
    nulls = dict.fromkeys(
        (
            *("imageProcessorTileSize", "imageProcessorTileOverlap", "imageProcessorTileFormat", "imageReadRole"),
            *("imageProcessorTileCompression", "regionOfInterest", "outputs", "featureProperties", "postProcessing"),
            *("imageProcessorParameters", "trainmaster", "outputBucket", "outputPrefix"),
        )
    )
    for body in (least, least | nulls):
        request = read_request(body).request
        assert (request.tile_size, request.tile_overlap) == (1024, 50)
        assert (request.tile_format, request.tile_compression) == (TileFormat.NITF, Compression.NONE)
        assert request.distillation == Distillation(algorithm=Suppression.NMS, iou=0.75)
        assert (request.priority, request.share, request.outputs) == (0, "default", ())
        assert request.result_key is ResultKey.JOB
        assert request.processor.is_http


def test_the_old_form_of_outputs_is_taken_and_yields_to_the_new_one():
    old = an_image_request(outputs=None, outputBucket="old", outputPrefix="there")
    assert read_request(old).request.outputs == (Output(bucket="old", prefix="there"),)
    both = read_request(old | {"outputs": [{"type": "S3", "bucket": "new"}]})
    assert both.request.outputs == (Output(bucket="new"),)
    assert both.warnings == ("outputBucket is ignored, since there are outputs.",)


def test_the_text_of_a_number_is_taken_for_the_number():
    request = read_request(an_image_request(imageProcessorTileSize="512", imageProcessorTileOverlap="0")).request
    assert (request.tile_size, request.tile_overlap) == (512, 0)
    request = read_request(an_image_request(imageProcessorTileSize=512.0, imageProcessorTileOverlap=64.0)).request
    assert repr((request.tile_size, request.tile_overlap)) == "(512, 64)"
    with pytest.raises(InvalidRequest):
        read_request(an_image_request(imageProcessorTileSize=512.5))


@pytest.mark.parametrize("value", [["a"], {"a": 1}])
def test_a_parameter_that_fits_into_no_header_is_refused_by_its_name(value):
    with pytest.raises(InvalidRequest) as caught:
        read_request(an_image_request(imageProcessorParameters={"CustomAttributes": value}))
    field = "imageProcessorParameters.CustomAttributes"
    assert (caught.value.field, caught.value.message) == (field, f"{field} should be text, a number, true or false.")


def test_unknown_members_are_named_and_ignored():
    body = an_image_request(
        jobName="no warning",
        jobArn="no warning either",
        color="red",
        imageProcessor={"name": "ships", "size": "xl"},
        outputs=[{"type": "S3", "bucket": "results", "region": "us-east-1"}],
        postProcessing=[{"step": "FEATURE_DISTILLATION", "algorithm": {"algorithmType": "NMS", "speed": 3}}],
    )
    reading = read_request(body)
    assert reading.warnings == (
        "color has no effect here and is ignored.",
        "imageProcessor.size has no effect here and is ignored.",
        "outputs[0].region has no effect here and is ignored.",
        "postProcessing[0].algorithm.speed has no effect here and is ignored.",
    )


def test_members_of_the_other_type_of_outputs_are_named_and_ignored():
    outputs = [
        {"type": "S3", "bucket": "results", "stream": "s", "assumedRole": ROLE},
        {"type": "Kinesis", "stream": "s", "prefix": "p", "role": ROLE},
    ]
    reading = read_request(an_image_request(outputs=outputs))
    assert reading.request.outputs == (Output(bucket="results"), StreamOutput(stream="s"))
    assert [each.partition(" ")[0] for each in reading.warnings] == [
        *("outputs[0].stream", "outputs[0].assumedRole"),
        *("outputs[1].prefix", "outputs[1].role"),
    ]


def test_the_outputs_that_the_documentation_shows_are_read():
    """The block of docs/how-to/image-jobs.md."""
    shown = [json.loads(each.text) for each in blocks() if each.reason == HERE]
    reading = read_request(an_image_request(outputs=[{"type": "S3", "bucket": "results"}, *shown]))
    assert reading.warnings == ()
    assert [each.stream for each in reading.request.streams] == ["detections"]


def test_several_images_are_refused_with_what_to_do_instead_of_processing_only_the_first():
    with pytest.raises(InvalidRequest) as caught:
        read_request(an_image_request(imageUrls=[f"{BUCKET}{n}.tif" for n in range(3)]))
    assert caught.value.field == "imageUrls"
    assert "There are 3 images" in caught.value.message
    assert "for each image" in caught.value.hint


def test_a_request_without_outputs_is_taken_with_a_warning():
    (warning,) = read_request(an_image_request(outputs=[])).warnings
    assert "no output" in warning


@pytest.mark.parametrize(("members", "field"), POISON.values(), ids=POISON)
def test_a_wrong_member_is_refused_by_its_path(members, field):
    with pytest.raises(InvalidRequest) as caught:
        read_request(an_image_request(**members))
    assert caught.value.field == field
    assert caught.value.message


def test_nothing_that_a_refused_request_holds_is_repeated_at_length():
    with pytest.raises(InvalidRequest) as caught:
        read_request(an_image_request(regionOfInterest="secret" * 1000))
    assert len(caught.value.message) < 300


def test_w11_the_settings_of_the_distillation_survive_being_stored():
    """ModelRunner's thresholds vanish for jobs that are read back from its table (facts, W11)."""
    step = {"step": "FEATURE_DISTILLATION", "algorithm": {"algorithmType": "SOFT_NMS", "iouThreshold": 0.25}}
    body = an_image_request(postProcessing=[step])
    stored = json.loads(json.dumps(body))
    assert read_request(stored).request == read_request(body).request
    assert read_request(stored).request.distillation.iou == 0.25
