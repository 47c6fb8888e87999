"""An image job's request, as values: ModelRunner's JSON (its "Image Request" schema), checked.

It must not read an image, nor know what endpoint there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from trainmaster.domain.image.endpoint import is_url


class ProcessorType(StrEnum):
    """Who answers: a SageMaker endpoint, or a model behind a URL."""

    SAGEMAKER = "SM_ENDPOINT"
    HTTP = "HTTP_ENDPOINT"


class TileFormat(StrEnum):
    """What a tile is sent as."""

    NITF = "NITF"
    JPEG = "JPEG"
    PNG = "PNG"
    GEOTIFF = "GTIFF"


class Compression(StrEnum):
    """How a tile is compressed inside its format."""

    NONE = "NONE"
    JPEG = "JPEG"
    J2K = "J2K"
    LZW = "LZW"


class Suppression(StrEnum):
    """How features found twice in overlaps are told from two features (`postProcessing`, FEATURE_DISTILLATION)."""

    NMS = "NMS"
    SOFT_NMS = "SOFT_NMS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """The model.

    Attributes:
        name: of the endpoint, or the model's URL.
        assumed_role: IAM role ARN under which the endpoint is reached; None for our own.
    """

    name: str
    type_: ProcessorType = ProcessorType.SAGEMAKER
    assumed_role: str | None = None

    @property
    def is_http(self) -> bool:
        """Whether a URL is called, whatever the type says (guide, "HTTP Endpoints"); schemes have no case."""
        return self.type_ is ProcessorType.HTTP or is_url(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where results go: `s3://<bucket>/<prefix>/<job>/...`."""

    bucket: str
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distillation:
    """How duplicates are removed.

    Attributes:
        iou: features whose boxes overlap by more (intersection over union, 0 to 1) are one.
        skip_box: of SOFT_NMS: features whose score has fallen below are left out.
        sigma: of SOFT_NMS: how fast scores fall with the overlap.
    """

    algorithm: Suppression = Suppression.NMS
    iou: float = 0.75
    skip_box: float = 0.0001
    sigma: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """What an image job asks for.

    Attributes:
        job_id: its name in the queue.
        image_url: `s3://bucket/key`, `http(s)://...`.
        parameters: passed on to InvokeEndpoint (`imageProcessorParameters`), `TargetVariant` among them.
        tile_size: pixels, of a square tile.
        tile_overlap: pixels that neighbours share at least; less than `tile_size`.
        image_read_role: IAM role ARN under which the image is read.
        region_of_interest: WKT, longitude and latitude; None for the whole image.
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
    outputs: tuple[Output, ...] = ()
    feature_properties: tuple[Mapping[str, Any], ...] = ()
    distillation: Distillation = field(default_factory=Distillation)
    priority: int = 0
    share: str = "default"

    @property
    def target_variant(self) -> str | None:
        """The variant that it names itself; an empty text counts as none."""
        return str(self.parameters.get("TargetVariant") or "") or None
