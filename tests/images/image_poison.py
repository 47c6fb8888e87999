"""Requests for image jobs of which one member is wrong, and that member's path.

Among them all for which a whole cycle of ModelRunner's scheduler fails (facts, W1). It must not hold anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BUCKET = {"type": "S3", "bucket": "results"}
SQUARE = "POLYGON ((1 1, 1 2, 2 2, 2 1, 1 1))"

POISON: Mapping[str, tuple[dict[str, Any], str]] = {
    "no processor": ({"imageProcessor": None}, "imageProcessor"),
    "a processor that is a text": ({"imageProcessor": "ships"}, "imageProcessor"),
    "a processor without a name": ({"imageProcessor": {"type": "SM_ENDPOINT"}}, "imageProcessor.name"),
    "an empty name": ({"imageProcessor": {"name": ""}}, "imageProcessor.name"),
    "an unknown type": ({"imageProcessor": {"name": "ships", "type": "CARRIER_PIGEON"}}, "imageProcessor.type"),
    "the type NONE": ({"imageProcessor": {"name": "ships", "type": "NONE"}}, "imageProcessor.type"),
    "no image": ({"imageUrls": []}, "imageUrls"),
    "no images at all": ({"imageUrls": None}, "imageUrls"),
    "several images": ({"imageUrls": ["s3://images/small.tif", "s3://images/second.tif"]}, "imageUrls"),
    "an image that is no text": ({"imageUrls": [7]}, "imageUrls[0]"),
    "an unknown format": ({"imageProcessorTileFormat": "BMP"}, "imageProcessorTileFormat"),
    "an unknown compression": ({"imageProcessorTileCompression": "ZIP"}, "imageProcessorTileCompression"),
    "a tile size that is a word": ({"imageProcessorTileSize": "large"}, "imageProcessorTileSize"),
    "a tile size that is a switch": ({"imageProcessorTileSize": True}, "imageProcessorTileSize"),
    "a tile of nothing": ({"imageProcessorTileSize": 0}, "imageProcessorTileSize"),
    "an overlap below nothing": ({"imageProcessorTileOverlap": -1}, "imageProcessorTileOverlap"),
    "an overlap as large as the tile": ({"imageProcessorTileOverlap": 1024}, "imageProcessorTileOverlap"),
    "a region that is not WKT": ({"regionOfInterest": "the harbour"}, "regionOfInterest"),
    "a region that is an object": ({"regionOfInterest": {"type": "Polygon"}}, "regionOfInterest"),
    "a role that is none": ({"imageReadRole": "reader"}, "imageReadRole"),
    "a model's role that is none": (
        {"imageProcessor": {"name": "ships", "assumedRole": "model"}},
        "imageProcessor.assumedRole",
    ),
    "a stream without a bucket": ({"outputs": [{"type": "Kinesis", "stream": "s"}]}, "outputs"),
    "a stream without a name": ({"outputs": [BUCKET, {"type": "Kinesis", "batchSize": 5}]}, "outputs[1].stream"),
    "a stream of another service": (
        {"outputs": [BUCKET, {"type": "Kinesis", "stream": "arn:aws:sqs:us-east-1:111122223333:stream/s"}]},
        "outputs[1].stream",
    ),
    "batches of nothing": (
        {"outputs": [BUCKET, {"type": "Kinesis", "stream": "s", "batchSize": 0}]},
        "outputs[1].batchSize",
    ),
    "a stream's role that is none": (
        {"outputs": [BUCKET, {"type": "Kinesis", "stream": "s", "assumedRole": "writer"}]},
        "outputs[1].assumedRole",
    ),
    "an unknown output": ({"outputs": [{"type": "Fax", "bucket": "b"}]}, "outputs[0].type"),
    "an output to nowhere": ({"outputs": [{"type": "S3", "prefix": "p"}]}, "outputs[0].bucket"),
    "an output's role that is none": (
        {"outputs": [{"type": "S3", "bucket": "results", "role": "writer"}]},
        "outputs[0].role",
    ),
    "an unknown key of the result": ({"trainmaster": {"resultKey": "date"}}, "trainmaster.resultKey"),
    "outputs that are an object": ({"outputs": {"type": "S3", "bucket": "b"}}, "outputs"),
    "an unknown step": ({"postProcessing": [{"step": "PAINT"}]}, "postProcessing[0].step"),
    "an unknown algorithm": (
        {"postProcessing": [{"step": "FEATURE_DISTILLATION", "algorithm": {"algorithmType": "MAGIC"}}]},
        "postProcessing[0].algorithm.algorithmType",
    ),
    "two distillations": ({"postProcessing": [{"step": "FEATURE_DISTILLATION"}] * 2}, "postProcessing"),
    "no job": ({"jobId": None}, "jobId"),
    "a name that no job can have": ({"jobId": "../../etc"}, "jobId"),
    "a name that is reserved": ({"jobId": "a-qstamp-2"}, "jobId"),
    "a name that is too long": ({"jobId": "a" * 64}, "jobId"),
    "properties that are no objects": ({"featureProperties": ["red"]}, "featureProperties[0]"),
    "an unknown wish": ({"trainmaster": {"prioritty": 5}}, "trainmaster.prioritty"),
    "a priority that is a text": ({"trainmaster": {"priority": "5"}}, "trainmaster.priority"),
    "a priority beyond all others": ({"trainmaster": {"priority": 10**9}}, "trainmaster.priority"),
    "a port that is none": ({"imageProcessor": {"name": "http://models.example:x/m"}}, "imageProcessor.name"),
    "a port beyond all": ({"imageProcessor": {"name": "http://models.example:99999999/m"}}, "imageProcessor.name"),
    "an image's port that is none": ({"imageUrls": ["https://images.example:0/a.tif"]}, "imageUrls[0]"),
    "a header of two lines": (
        {"imageProcessorParameters": {"ContentType": "a\r\nX: y"}},
        "imageProcessorParameters.ContentType",
    ),
    "a header that is not ASCII": (
        {"imageProcessorParameters": {"CustomAttributes": "gr\u00fcn"}},
        "imageProcessorParameters.CustomAttributes",
    ),
    "a long parameter": ({"imageProcessorParameters": {"CustomAttributes": "a" * 1025}}, "imageProcessorParameters"),
    "a large number as a parameter": ({"imageProcessorParameters": {"a": 10**1025}}, "imageProcessorParameters"),
    "many parameters": ({"imageProcessorParameters": {f"p{n}": n for n in range(51)}}, "imageProcessorParameters"),
    "half a character in a prefix": (
        {"outputs": [{"type": "S3", "bucket": "results", "prefix": "\ud800"}]},
        "outputs[0].prefix",
    ),
    "half a character in a name": ({"jobId": "a\udc00"}, "jobId"),
    "half a character in a member's name": ({"featureProperties": [{"\ud800": 1}]}, "featureProperties[0]"),
    "half a character in an unread place": ({"color": "\ud800"}, "color"),
    "many outputs": ({"outputs": [{"type": "S3", "bucket": "results"}] * 11}, "outputs"),
    "a control character in a prefix": (
        {"outputs": [{"type": "S3", "bucket": "results", "prefix": "a\x00b"}]},
        "outputs[0].prefix",
    ),
    "a prefix longer than keys": (
        {"outputs": [{"type": "S3", "bucket": "results", "prefix": "a" * 513}]},
        "outputs[0].prefix",
    ),
    "a bucket of dots": ({"outputs": [{"type": "S3", "bucket": "..."}]}, "outputs[0].bucket"),
    "a share that breaks keys": ({"trainmaster": {"share": "a/b#c"}}, "trainmaster.share"),
}
