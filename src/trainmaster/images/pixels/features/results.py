"""Results in S3 as GeoJSON FeatureCollections: of each region, saved as it progresses, and of the image.

    s3://<bucket>/<prefix>/<job>/regions/<number>.geojson     features of its tiles, before duplicates are removed
    s3://<bucket>/<prefix>/<job>/<image's name>.geojson       the image's; without <job> on request (`ResultKey`)

A region's result also lists its completed tiles, from which the next worker continues.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from trainmaster.adapters.aws_errors import AWS_ERRORS, code_of, to_domain_error
from trainmaster.domain.errors import InvalidRequest, NotPermitted, RequestRefused, ServiceError
from trainmaster.images.domain.request import Output, ResultKey
from trainmaster.images.domain.tiling import Window
from trainmaster.images.pixels.features.features import Feature
from trainmaster.images.pixels.features.streams import FeatureStream, records_of

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CONTENT_TYPE = "application/geo+json"
_OWNERS: Final = "bucket-owner-full-control"
"""Canned ACL: the owner of a bucket of another account has full control of results (S3 user guide, "Canned ACL")."""
# S3's codes for a missing key; without permission to list the bucket it denies access instead.
_MISSING = frozenset({"NoSuchKey", "404", "AccessDenied", "403"})


@dataclass(slots=True)
class Found:
    """Features of the processed tiles of a region.

    Attributes:
        features: in image coordinates.
        clipped: for each, whether its tile's edge may have cut it off.
        tiles: for each, its tile's index.
        done: the indexes of processed tiles.
    """

    features: list[Feature] = field(default_factory=list)
    clipped: list[bool] = field(default_factory=list)
    tiles: list[int] = field(default_factory=list)
    done: set[int] = field(default_factory=set)

    def add(self, tile: int, features: Sequence[Feature], clipped: Iterable[bool]) -> None:
        """Add the features of one tile."""
        self.features.extend(features)
        self.clipped.extend(clipped)
        self.tiles.extend([tile] * len(features))
        self.done.add(tile)


@dataclass(frozen=True, slots=True)
class ResultNames:
    """Keys of a job's results behind the prefix of an output.

    Attributes:
        job: the job's name.
        image: the image's name.
        key: place of the image's result.
    """

    job: str
    image: str
    key: ResultKey = ResultKey.JOB

    def of_image(self) -> str:
        """Return the key of the image's result."""
        name = f"{self.image}.geojson"
        return name if self.key is ResultKey.IMAGE else f"{self.job}/{name}"

    def of_region(self, number: int) -> str:
        """Return the key of a region's result."""
        return f"{self.job}/regions/{number:05}.geojson"


class Results:
    """The store of a job's results.

    Args:
        s3: returns the boto3 S3 client of a role, the queue's own for None; raises as `RoleClients.client` does.
        names: keys of the results.
        outputs: the destinations; the first is read again. Without any, nothing is kept.
        streams: receive the features of the image's result.
    """

    def __init__(
        self,
        s3: Callable[[str | None], S3Client],
        names: ResultNames,
        outputs: Sequence[Output],
        streams: Sequence[FeatureStream] = (),
    ) -> None:
        self._s3 = s3
        self._names = names
        self._outputs = outputs
        self._streams = streams

    @property
    def kept(self) -> bool:
        """True if saved results can be read again."""
        return bool(self._outputs)

    def save(self, number: int, window: Window, tiles: int, found: Found) -> None:
        """Save a region's result so far; raise `InvalidRequest` for a bucket that cannot be written to.

        Raises `Throttled`, `Unavailable`.
        """
        metadata = {
            "job": self._names.job,
            "region": number,
            "window": [window.column, window.row, window.width, window.height],
            "tiles": tiles,
            "tilesDone": sorted(found.done),
            "clipped": [index for index, cut in enumerate(found.clipped) if cut],
            "tileOf": found.tiles,
        }
        self._put(self._names.of_region(number), found.features, metadata)

    def load(self, number: int, window: Window, tiles: int) -> Found:
        """Return the saved result of a region; empty without one, or if the image was divided otherwise.

        Raises `Throttled`, `Unavailable`.
        """
        content = self._get(self._names.of_region(number))
        metadata = content.get("trainmaster") or {}
        expected = [window.column, window.row, window.width, window.height]
        if (
            metadata.get("window") != expected
            or metadata.get("tiles") != tiles
            or metadata.get("job") != self._names.job
        ):
            return Found()
        cut = set(metadata["clipped"])
        features = content["features"]
        clipped = [index in cut for index in range(len(features))]
        return Found(features, clipped, metadata["tileOf"], set(metadata["tilesDone"]))

    def publish(
        self,
        features: Sequence[Feature],
        *,
        regions: int,
        failed: Sequence[int],
        keep_alive: Callable[[], None] = lambda: None,
    ) -> None:
        """Write the image's result, then send its features to the streams.

        Args:
            features: without duplicates.
            regions: number of regions.
            failed: regions whose features are missing.
            keep_alive: called before each request to a stream; whatever it raises ends the sending.

        Raises `InvalidRequest` for a bucket or stream that cannot be written to, `Throttled`, `Unavailable`.
        """
        metadata = {"job": self._names.job, "regions": regions, "failedRegions": list(failed)}
        self._put(self._names.of_image(), features, metadata)
        if self._streams:
            records = records_of(features, metadata)
            for each in self._streams:
                each.send(records, keep_alive)

    def _put(self, name: str, features: Sequence[Feature], metadata: dict[str, Any]) -> None:
        """Write to all outputs. `trainmaster` is a foreign member, as RFC 7946 (6.1) allows."""
        document = {"type": "FeatureCollection", "features": features, "trainmaster": metadata}
        body = json.dumps(document, separators=(",", ":")).encode()
        for output in self._outputs:
            try:
                self._s3(output.role).put_object(
                    Bucket=output.bucket, Key=_key(output, name), Body=body, ContentType=CONTENT_TYPE, ACL=_OWNERS
                )
            except AWS_ERRORS as error:
                raise _refused(to_domain_error(error), output) from error
            except NotPermitted as error:
                raise _refused(error, output) from error

    def _get(self, name: str) -> dict[str, Any]:
        if not self._outputs:
            return {}
        output = self._outputs[0]
        try:
            answer = self._s3(output.role).get_object(Bucket=output.bucket, Key=_key(output, name))
            content: dict[str, Any] = json.loads(answer["Body"].read())
        except ClientError as error:
            if code_of(error) in _MISSING:
                return {}
            raise to_domain_error(error) from error
        except AWS_ERRORS as error:
            raise to_domain_error(error) from error
        except NotPermitted as error:
            raise _refused(error, output) from error
        return content


def _key(output: Output, name: str) -> str:
    prefix = output.prefix.strip("/")
    return f"{prefix}/{name}" if prefix else name


def _refused(error: ServiceError, output: Output) -> InvalidRequest | ServiceError:
    """Return the error of a write; a bucket or role that is missing or closed is not worth a retry."""
    if isinstance(error, NotPermitted | RequestRefused):
        under = f" under {output.role}" if output.role else ""
        return InvalidRequest(f"results cannot be written to {output.bucket}{under}: {error}", field="outputs")
    return error
