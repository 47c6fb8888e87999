"""API models of requests for image jobs: ModelRunner's JSON, and the queue's own object `trainmaster` beside it.

Requests that ModelRunner accepts are accepted, including the old form of outputs. Unknown members are ignored with a
warning, as ModelRunner ignores them; unknown members of `trainmaster` are rejected, since no other software writes
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    ValidationError,
    model_validator,
)

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.policy.settings import DEFAULT_SHARE
from trainmaster.domain.requests.fields import shown
from trainmaster.domain.requests.options import OPTIONS
from trainmaster.domain.requests.values import label
from trainmaster.handlers.api.errors import first_problem
from trainmaster.handlers.api.paths import path_of
from trainmaster.handlers.models.base import COMMON, RequestModel
from trainmaster.images.domain.request import (
    MAX_BATCH,
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
    problems,
)

_SILENT = frozenset({"jobName", "jobArn"})
"""Members that ModelRunner's own clients send and that its code does not read either."""
_NO_OUTPUT = "The request names no outputs, so the features that the model finds are not stored."
_OF_OTHERS = {"S3": ("stream", "batchSize", "assumedRole"), "Kinesis": ("bucket", "prefix", "role")}
"""Members of outputs by a type that does not have them; ModelRunner ignores them there, too."""
_DISTILLATION = Distillation()
_WKT = re.compile(r"\s*[A-Za-z]+(\s+[A-Za-z]+)?\s*\([-+0-9eE.,()\s]+\)\s*")
"""A kind of geometry, perhaps with its dimensions, and its coordinates."""
_HALF = re.compile("[\ud800-\udfff]")


class ImageJobRequest(RootModel[dict[str, Any]]):
    """A request for an image job, as one would send it to OversightML ModelRunner.

    Its members are ModelRunner's. The object `trainmaster` beside them has the job's `priority` and `share`, and
    `resultKey`, the key of the image's result. The job's name is `jobId`.
    """

    model_config = ConfigDict(
        hide_input_in_errors=True,
        json_schema_extra={
            "required": ["jobId", "imageUrls", "imageProcessor"],
            "examples": [
                {
                    "jobId": "harbour-7",
                    "imageUrls": ["s3://bucket/images/harbour-7.tif"],
                    "imageProcessor": {"name": "ships", "type": "SM_ENDPOINT"},
                    "imageProcessorTileSize": 1024,
                    "imageProcessorTileOverlap": 50,
                    "imageProcessorTileFormat": "GTIFF",
                    "outputs": [{"type": "S3", "bucket": "bucket", "prefix": "results"}],
                    "trainmaster": {"priority": 5, "share": "vision"},
                }
            ],
        },
    )


class _Given(BaseModel):
    """Members by ModelRunner's names; those that are null count as absent."""

    model_config = ConfigDict(**COMMON, extra="allow", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        return {key: each for key, each in value.items() if each is not None} if isinstance(value, dict) else value


def _whole(value: Any) -> Any:
    """ModelRunner takes the text of a number for the number, and 512.0 for 512."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10 else value


def _scalar(value: Any) -> Any:
    """Reject what no header can hold, in one sentence: a union would have a problem with each of its types."""
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError("should be text, a number, true or false")


_Whole = Annotated[int, BeforeValidator(_whole)]
_Scalar = Annotated[Any, AfterValidator(_scalar)]
_Text = Annotated[str, Field(min_length=1)]
_Loose = Field(strict=False)
"""In strict mode pydantic takes no text for a member of an enumeration."""


class _Processor(_Given):
    name: _Text
    type: Annotated[ProcessorType, _Loose] = ProcessorType.SAGEMAKER
    assumed_role: str | None = None


class _Output(_Given):
    type: Literal["S3", "Kinesis"]
    bucket: str | None = None
    prefix: str = ""
    role: str | None = None
    stream: str | None = None
    batch_size: _Whole = MAX_BATCH
    assumed_role: str | None = None


class _Algorithm(_Given):
    algorithm_type: Annotated[Suppression, _Loose] = _DISTILLATION.algorithm
    iou_threshold: float = _DISTILLATION.iou
    skip_box_threshold: float = _DISTILLATION.skip_box
    sigma: float = _DISTILLATION.sigma
    within_tiles: bool = _DISTILLATION.within_tiles


class _Step(_Given):
    step: Literal["FEATURE_DISTILLATION"]
    algorithm: _Algorithm = Field(default_factory=_Algorithm)


class _Ours(RequestModel):
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    share: str = DEFAULT_SHARE
    result_key: Annotated[ResultKey, _Loose] = ResultKey.JOB


class _Body(_Given):
    job_id: _Text
    image_urls: Annotated[list[_Text], Field(min_length=1)]
    image_processor: _Processor
    image_processor_parameters: dict[str, _Scalar] = Field(default_factory=dict)
    image_processor_tile_size: _Whole = 1024
    image_processor_tile_overlap: _Whole = 50
    image_processor_tile_format: Annotated[TileFormat, _Loose] = TileFormat.NITF
    image_processor_tile_compression: Annotated[Compression, _Loose] = Compression.NONE
    image_read_role: str | None = None
    region_of_interest: str | None = None
    outputs: list[_Output] = Field(default_factory=list)
    output_bucket: str | None = None
    output_prefix: str = ""
    feature_properties: list[dict[str, Any]] = Field(default_factory=list)
    post_processing: Annotated[list[_Step], Field(max_length=1)] = Field(default_factory=list)
    trainmaster: _Ours = Field(default_factory=_Ours)


@dataclass(frozen=True, slots=True)
class Reading:
    """A request, and the fields of its body that are not honored."""

    request: ImageRequest
    warnings: tuple[str, ...] = ()


def read_request(body: Mapping[str, Any]) -> Reading:
    """Return the request in a body. Raises `InvalidRequest` naming the field by its path."""
    _check_texts(body, ())
    try:
        given = _Body.model_validate(body)
    except ValidationError as error:
        raise first_problem(error.errors(), inside=0) from None
    request = _request(given)
    for problem in problems(request):
        raise problem.refusal()
    return Reading(request, tuple(_warnings(given)))


def _check_texts(value: Any, where: tuple[str | int, ...]) -> None:
    """Raise `InvalidRequest` for halves of surrogate pairs: JSON can say them, and no other text can hold them."""
    if isinstance(value, str) and _HALF.search(value):
        wrong = f"{shown(value)} has half a character: a surrogate without the other one."
        raise InvalidRequest(wrong, field=path_of(where) or None, hint="Send text as UTF-8, or whole pairs of escapes.")
    if isinstance(value, Mapping):
        for key, each in value.items():
            _check_texts(key, where)
            _check_texts(each, (*where, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            _check_texts(each, (*where, index))


def _request(given: _Body) -> ImageRequest:
    processor, ours = given.image_processor, given.trainmaster
    return ImageRequest(
        job_id=given.job_id,
        image_url=_only(given.image_urls),
        processor=Processor(name=processor.name, type_=processor.type, assumed_role=processor.assumed_role or None),
        tile_size=given.image_processor_tile_size,
        tile_overlap=given.image_processor_tile_overlap,
        tile_format=given.image_processor_tile_format,
        tile_compression=given.image_processor_tile_compression,
        parameters={name: value for name, value in given.image_processor_parameters.items() if value is not None},
        image_read_role=given.image_read_role or None,
        region_of_interest=_interest(given.region_of_interest),
        outputs=tuple(_outputs(given)),
        result_key=ours.result_key,
        feature_properties=tuple(given.feature_properties),
        distillation=_distillation(given.post_processing),
        priority=ours.priority,
        share=_share(ours.share),
    )


def _only(urls: Sequence[str]) -> str:
    """Return the only image; ModelRunner uses the first of several and ignores the others."""
    if len(urls) > 1:
        hint = "Send a request of its own, with a jobId of its own, for each image."
        raise InvalidRequest(f"There are {len(urls)} images; a job processes one.", field="imageUrls", hint=hint)
    return urls[0]


def _interest(text: str | None) -> str | None:
    """Check the form only; the reader of the image checks the meaning."""
    if text and not _WKT.fullmatch(text):
        hint = "Specify longitudes and latitudes as WKT: POLYGON ((7 53, 8 53, 8 54, 7 54, 7 53))."
        raise InvalidRequest(f"{shown(text)} is not WKT.", field="regionOfInterest", hint=hint)
    return text or None


def _outputs(given: _Body) -> Iterator[Output | StreamOutput]:
    for index, output in enumerate(given.outputs):
        path = f"outputs[{index}]"
        if output.type == "S3":
            bucket = _present(output.bucket, f"{path}.bucket", "Specify the bucket for the results.")
            yield Output(bucket=bucket, prefix=output.prefix, role=output.role or None)
        else:
            stream = _present(output.stream, f"{path}.stream", "Specify the name or the ARN of the stream.")
            yield StreamOutput(stream=stream, batch_size=output.batch_size, role=output.assumed_role or None)
    if not given.outputs and given.output_bucket:
        yield Output(bucket=given.output_bucket, prefix=given.output_prefix)


def _present(value: str | None, field: str, hint: str) -> str:
    if not value:
        raise InvalidRequest(f"{field} is missing.", field=field, hint=hint)
    return value


def _distillation(steps: Sequence[_Step]) -> Distillation:
    if not steps:
        return _DISTILLATION
    asked = steps[0].algorithm
    return Distillation(
        algorithm=asked.algorithm_type,
        iou=asked.iou_threshold,
        skip_box=asked.skip_box_threshold,
        sigma=asked.sigma,
        within_tiles=asked.within_tiles,
    )


def _share(name: str) -> str:
    """Check that it has the characters of the option `share`, since it becomes a part of keys."""
    if label(name) is None:
        hint = f"It must be {OPTIONS['share'].takes}."
        raise InvalidRequest("This is not a valid share name.", field="trainmaster.share", hint=hint)
    return name


def _warnings(given: _Body) -> Iterator[str]:
    for where in _unknown(given, ()):
        yield f"{path_of(where)} has no effect here and is ignored."
    for index, output in enumerate(given.outputs):
        named = output.model_dump(by_alias=True, exclude_unset=True)
        for name in filter(named.__contains__, _OF_OTHERS[output.type]):
            yield f"outputs[{index}].{name} has no effect in an output of type {output.type} and is ignored."
    if given.outputs and given.output_bucket:
        yield "outputBucket is ignored, since there are outputs."
    if not given.outputs and not given.output_bucket:
        yield _NO_OUTPUT


def _unknown(value: Any, where: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Places of the members that no model has, at any depth."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _unknown(each, (*where, index))
    if isinstance(value, _Given):
        yield from ((*where, name) for name in value.model_extra or {} if where or name not in _SILENT)
        for name, field in type(value).model_fields.items():
            yield from _unknown(getattr(value, name), (*where, field.alias or name))
