"""Requests for image jobs as values: ModelRunner's JSON (its "Image Request" schema), validated."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from trainmaster.domain.compat import StrEnum
from trainmaster.domain.jobs.names import MAX_NAME, STAMP
from trainmaster.domain.policy.roles import is_role
from trainmaster.domain.requests.fields import Problem, shown
from trainmaster.domain.requests.values import job_names
from trainmaster.images.domain.endpoint import is_url, key_of

# EndpointName (CreateEndpoint, API reference).
_ENDPOINT = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", re.ASCII)
# S3's bucket names, old ones among them, and ARNs, which stand for them in its API (developer guide, "access points").
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{2,254}|arn:aws[a-z-]*:s3[a-z0-9:/._-]+", re.ASCII)

_MAX_KEY_LENGTH = 600
"""Bytes of a model's URL as part of its pool's name: keys of the table stay within 1,024 bytes."""
# PutRecords, `StreamName` and `StreamARN` (Kinesis API reference).
_STREAM = re.compile(r"[a-zA-Z0-9_.-]{1,128}|arn:aws[a-z-]*:kinesis:[a-z0-9-]+:[0-9]{12}:stream/[a-zA-Z0-9_.-]{1,128}")
MAX_BATCH = 500
"""Maximum records of a PutRecords request."""
MAX_OUTPUTS = 10
"""Each region's result is written to every output."""
_MAX_PREFIX_LENGTH = 512
"""Bytes; the job's and the image's name follow in the key of a result, and S3 takes 1,024."""
_MAX_PARAMETERS, _MAX_PARAMETER_LENGTH = 50, 1024
"""InvokeEndpoint has a dozen parameters, each of at most 1,024 characters (`CustomAttributes`)."""
_HEADER = re.compile(r"[\x20-\x7e]*")
"""Characters of an HTTP header, in which these parameters travel."""
_MODEL_FIELD = "imageProcessor.name"
SIZE_FIELD = "imageSize"
"""Field of a planned request with the image's `[width, height]` in pixels, since planning reads no image."""


def is_image_request(body: Mapping[str, Any]) -> bool:
    """Return whether this requests an image job: it has ModelRunner's fields and none of a training job."""
    return "TrainingJobName" not in body and ("imageUrls" in body or "imageProcessor" in body)


class ProcessorType(StrEnum):
    """Kinds of models: a SageMaker endpoint, or a URL."""

    SAGEMAKER = "SM_ENDPOINT"
    HTTP = "HTTP_ENDPOINT"


class TileFormat(StrEnum):
    """Formats in which tiles are sent."""

    NITF = "NITF"
    JPEG = "JPEG"
    PNG = "PNG"
    GEOTIFF = "GTIFF"


class Compression(StrEnum):
    """Compressions of a tile inside its format."""

    NONE = "NONE"
    JPEG = "JPEG"
    J2K = "J2K"
    LZW = "LZW"


class Suppression(StrEnum):
    """Algorithms that remove duplicate features of overlaps (`postProcessing`, FEATURE_DISTILLATION)."""

    NMS = "NMS"
    SOFT_NMS = "SOFT_NMS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """The model.

    Attributes:
        name: of the endpoint, or the model's URL.
        assumed_role: IAM role ARN under which the endpoint is reached; None for the queue's own role.
    """

    name: str
    type_: ProcessorType = ProcessorType.SAGEMAKER
    assumed_role: str | None = None

    @property
    def is_http(self) -> bool:
        """True if a URL is called, regardless of the type (guide, "HTTP Endpoints"); schemes have no case."""
        return self.type_ is ProcessorType.HTTP or is_url(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Location of results: `s3://<bucket>/<prefix>/...`.

    Attributes:
        role: IAM role ARN under which results are written and read again; None for the queue's own role.
    """

    bucket: str
    prefix: str = ""
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOutput:
    """A Kinesis data stream that receives the features of the image's result.

    Attributes:
        stream: its name, or its ARN.
        batch_size: maximum records of a PutRecords request; it takes effect up to Kinesis' own maximum.
        role: IAM role ARN under which records are sent; None for the queue's own role.
    """

    stream: str
    batch_size: int = MAX_BATCH
    role: str | None = None


class ResultKey(StrEnum):
    """Keys of an image's result in its outputs (`trainmaster.resultKey`)."""

    JOB = "job"
    """`<prefix>/<job>/<image>.geojson`."""
    IMAGE = "image"
    """`<prefix>/<image>.geojson`, as ModelRunner's S3 sink builds it: a later job of the same image replaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distillation:
    """Removal of duplicate features.

    Attributes:
        iou: boxes with a larger intersection over union, 0 to 1, count as the same feature.
        skip_box: of SOFT_NMS: minimum score; features below it are dropped.
        sigma: of SOFT_NMS: decay of scores with the overlap.
        within_tiles: whether features of one tile are compared, too, not only those that two tiles may show.
    """

    algorithm: Suppression = Suppression.NMS
    iou: float = 0.75
    skip_box: float = 0.0001
    sigma: float = 0.1
    within_tiles: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """A validated request for an image job.

    Attributes:
        job_id: the job's name in the queue.
        image_url: `s3://bucket/key`, `http(s)://...`.
        parameters: passed on to InvokeEndpoint (`imageProcessorParameters`), `TargetVariant` among them.
        tile_size: pixels per axis of a square tile.
        tile_overlap: minimum overlap of neighboring tiles in pixels; less than `tile_size`.
        image_read_role: IAM role ARN under which the image is read.
        region_of_interest: WKT, longitude and latitude; None for the whole image.
        result_key: key of the image's result; the regions' results always lie under the job's name.
        feature_properties: added to each feature.
        priority, share: as for training jobs.
    """

    job_id: str
    image_url: str
    processor: Processor
    tile_size: int = 1024
    tile_overlap: int = 50
    tile_format: TileFormat = TileFormat.NITF
    tile_compression: Compression = Compression.NONE
    parameters: Mapping[str, Any] = field(default_factory=dict)
    image_read_role: str | None = None
    region_of_interest: str | None = None
    outputs: tuple[Output | StreamOutput, ...] = ()
    result_key: ResultKey = ResultKey.JOB
    feature_properties: tuple[Mapping[str, Any], ...] = ()
    distillation: Distillation = field(default_factory=Distillation)
    priority: int = 0
    share: str = "default"

    @property
    def buckets(self) -> tuple[Output, ...]:
        """The outputs in S3."""
        return tuple(each for each in self.outputs if isinstance(each, Output))

    @property
    def streams(self) -> tuple[StreamOutput, ...]:
        """The outputs that are streams."""
        return tuple(each for each in self.outputs if isinstance(each, StreamOutput))

    @property
    def target_variant(self) -> str | None:
        """The variant that the request names; an empty text counts as none."""
        return str(self.parameters.get("TargetVariant") or "") or None


COMPRESSIONS: Mapping[TileFormat, tuple[Compression, ...]] = {
    TileFormat.NITF: (Compression.NONE, Compression.JPEG, Compression.J2K),
    TileFormat.GEOTIFF: (Compression.NONE, Compression.JPEG, Compression.LZW),
}
"""Compressions of formats that leave a choice; JPEG and PNG have their own."""


RESERVED = frozenset(
    {
        *("imageGeometry", "imageBBox", "bounds_imcoords", "geom_imcoords", "detection"),
        *("featureClasses", "feature_types", "image_id"),
    }
)
"""Properties that identify a feature: a common value would make all features duplicates."""


def problems(request: ImageRequest) -> Iterator[Problem]:
    """Yield the problems of a request's values; `images/handlers/models.py` checks its form."""
    yield from _name_problems(request.job_id)
    yield from _url_problems("imageUrls[0]", request.image_url, ("s3", "http", "https"))
    yield from _processor_problems(request.processor)
    yield from _tile_problems(request)
    yield from _role_problems("imageReadRole", request.image_read_role)
    yield from _parameter_problems(request.parameters)
    yield from _output_problems(request.outputs)
    if request.streams and not request.buckets:
        wrong = "There is a stream and no bucket: the results of regions are kept in a bucket until they are merged."
        yield Problem("outputs", wrong, "Add an output of type S3.")
    yield from _distillation_problems(request.distillation)
    for index, given in enumerate(request.feature_properties):
        for name in sorted(RESERVED & given.keys()):
            wrong = f"{name} identifies a feature, so it cannot be the same for all."
            yield Problem(f"featureProperties[{index}].{name}", wrong, "Specify another name.")


def _parameter_problems(parameters: Mapping[str, Any]) -> Iterator[Problem]:
    path = "imageProcessorParameters"
    if len(parameters) > _MAX_PARAMETERS:
        wrong = f"There are {len(parameters)} parameters."
        yield Problem(path, wrong, f"Specify at most {_MAX_PARAMETERS}: those of InvokeEndpoint.")
    for name, value in parameters.items():
        text = value if isinstance(value, str) else repr(value)
        if len(name) > _MAX_PARAMETER_LENGTH or len(text) > _MAX_PARAMETER_LENGTH:
            wrong = f"A parameter, or its name, has more than {_MAX_PARAMETER_LENGTH} characters."
            yield Problem(path, wrong, "Specify shorter ones.")
        elif not _HEADER.fullmatch(text):
            wrong = f"{shown(text)} cannot be sent: it goes into a header of HTTP."
            yield Problem(f"{path}.{name}", wrong, "Use printable ASCII, without line breaks.")


def _output_problems(outputs: Sequence[Output | StreamOutput]) -> Iterator[Problem]:
    if len(outputs) > MAX_OUTPUTS:
        yield Problem("outputs", f"There are {len(outputs)} outputs.", f"Specify at most {MAX_OUTPUTS}.")
    for index, output in enumerate(outputs):
        path = f"outputs[{index}]"
        yield from _bucket_problems(path, output) if isinstance(output, Output) else _stream_problems(path, output)


def _bucket_problems(path: str, output: Output) -> Iterator[Problem]:
    if not _BUCKET.fullmatch(output.bucket):
        wrong = f"{shown(output.bucket)} is not a bucket name."
        yield Problem(f"{path}.bucket", wrong, "Specify only the bucket here, and the rest as prefix.")
    if len(output.prefix.encode()) > _MAX_PREFIX_LENGTH or any(ord(each) < ord(" ") for each in output.prefix):
        wrong = f"{shown(output.prefix)} cannot begin a key."
        hint = f"Specify at most {_MAX_PREFIX_LENGTH} bytes, without control characters."
        yield Problem(f"{path}.prefix", wrong, hint)
    yield from _role_problems(f"{path}.role", output.role)


def _stream_problems(path: str, output: StreamOutput) -> Iterator[Problem]:
    if not _STREAM.fullmatch(output.stream):
        wrong = f"{shown(output.stream)} is neither the name nor the ARN of a stream."
        yield Problem(f"{path}.stream", wrong, "Specify the name of a Kinesis data stream, or its ARN.")
    if output.batch_size < 1:
        wrong = f"Requests of {shown(output.batch_size)} records are not possible."
        yield Problem(f"{path}.batchSize", wrong, f"Specify 1 or more; at most {MAX_BATCH} take effect.")
    yield from _role_problems(f"{path}.assumedRole", output.role)


def _name_problems(name: str) -> Iterator[Problem]:
    """Yield a problem unless the identifier is a legal job name."""
    if job_names(name) != (name,):
        hint = f"Use letters, digits and single '-' between them, at most {MAX_NAME}, and not '{STAMP}'."
        yield Problem("jobId", f"{shown(name)} cannot be a job's name.", hint)


def _url_problems(field_: str, url: str, schemes: tuple[str, ...]) -> Iterator[Problem]:
    kinds = " or ".join(f"{scheme}://" for scheme in schemes)
    try:
        parts = urlsplit(url)
        # Reading an invalid port raises ValueError.
        whole = bool(parts.hostname) and (len(parts.path) > 1 if parts.scheme == "s3" else parts.port != 0)
    except ValueError:
        yield Problem(field_, f"{shown(url)} is not a URL.", f"Specify one that begins with {kinds}.")
        return
    if parts.scheme not in schemes or not url.isprintable():
        yield Problem(field_, f"{shown(url)} cannot be read.", f"Specify a URL that begins with {kinds}.")
    elif not whole:
        hint = "Specify s3://bucket/key." if parts.scheme == "s3" else f"Name the host behind {kinds}."
        yield Problem(field_, f"{shown(url)} is not a complete URL.", hint)


def _processor_problems(processor: Processor) -> Iterator[Problem]:
    if processor.is_http:
        found = [*_url_problems(_MODEL_FIELD, processor.name, ("http", "https"))]
        yield from found
        if not found and len(key_of(processor.name).encode()) > _MAX_KEY_LENGTH:
            text = f"The model's URL has more than {_MAX_KEY_LENGTH} bytes before its query."
            yield Problem(_MODEL_FIELD, text, "Specify a shorter one; the query does not count.")
    elif not _ENDPOINT.fullmatch(processor.name):
        wrong = f"{shown(processor.name)} is not the name of a SageMaker endpoint."
        yield Problem(_MODEL_FIELD, wrong, "Specify an endpoint's name, or a URL that begins with http(s)://.")
    yield from _role_problems("imageProcessor.assumedRole", processor.assumed_role)


def _role_problems(field_: str, role: str | None) -> Iterator[Problem]:
    """Yield a problem for an invalid role; ModelRunner's own requests have "" for none."""
    if role and not is_role(role):
        hint = "Specify its ARN, such as arn:aws:iam::111122223333:role/reader."
        yield Problem(field_, f"{shown(role)} is not the ARN of an IAM role.", hint)


def _tile_problems(request: ImageRequest) -> Iterator[Problem]:
    size, overlap = request.tile_size, request.tile_overlap
    if size < 1:
        yield Problem("imageProcessorTileSize", f"Tiles have {shown(size)} pixels per axis.", "Specify 1 or more.")
    elif not 0 <= overlap < size:
        wrong = f"The overlap of tiles is {shown(overlap)} pixels, and the tiles have {shown(size)}."
        yield Problem("imageProcessorTileOverlap", wrong, f"Specify a whole number from 0 to {size - 1}.")
    known = COMPRESSIONS.get(request.tile_format)
    if known is not None and request.tile_compression not in known:
        wrong = f"{request.tile_format} tiles cannot be compressed as {request.tile_compression}."
        yield Problem("imageProcessorTileCompression", wrong, f"{request.tile_format} supports {', '.join(known)}.")


def _distillation_problems(rules: Distillation) -> Iterator[Problem]:
    path = "postProcessing[0].algorithm"
    for member, number in (("iouThreshold", rules.iou), ("skipBoxThreshold", rules.skip_box)):
        if not 0 <= number <= 1:
            yield Problem(f"{path}.{member}", f"{member} is {shown(number)}.", "Specify a number from 0 to 1.")
    if not 0 < rules.sigma < math.inf:
        yield Problem(f"{path}.sigma", f"sigma is {shown(rules.sigma)}.", "Specify a number more than 0; 0.1 is usual.")
