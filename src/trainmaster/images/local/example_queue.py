"""Image jobs of the example queue: an image, an endpoint, and a slow model behind it."""

from __future__ import annotations

import json
import random
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final

STACKS: Final = {
    "images": {
        "ImageBucketArns": "arn:aws:s3:::scenes",
        "ImageOutputBucketArns": "arn:aws:s3:::detections",
        "ImageSenders": "*",
        "RegionConcurrency": "3",
        "RegionSize": "(512,512)",
        "TileWorkersPerInstance": "2",
    }
}
"""The stack of image jobs, with few processes: each one has to start."""
ENDPOINT: Final = "ship-detector"
_CONCURRENCY: Final = 4
_SIDE: Final = 1024
_TILE: Final = 256
_MODEL_SECONDS: Final = 1.5
_SHIP: Final = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "geometry": None,
            "properties": {"imageBBox": [60, 60, 90, 90], "featureClasses": [{"iri": "ship", "score": 0.9}]},
        }
    ],
}


@dataclass(frozen=True, slots=True)
class ImageExample:
    """Image jobs of a team; see `local.example_queue.player.Sort`."""

    stem: str = "harbour-scan"
    team: str = "vision"
    path: str = "/image-jobs"
    alive: int = 3
    pause: float = 25.0
    hold: bool = False

    def body(self, number: int, rng: random.Random, _now: datetime) -> Mapping[str, Any]:
        """Return the request of an image job."""
        return {
            "jobId": f"{self.stem}-{number}",
            "imageUrls": ["s3://scenes/harbour.png"],
            "imageProcessor": {"name": ENDPOINT, "type": "SM_ENDPOINT"},
            "imageProcessorTileSize": _TILE,
            "imageProcessorTileOverlap": 16,
            "imageProcessorTileFormat": "PNG",
            "outputs": [{"type": "S3", "bucket": "detections", "prefix": "harbour"}],
            "trainmaster": {"share": self.team, "priority": rng.choice((0, 5))},
        }


EXAMPLES: Final = (ImageExample(),)


def prepare(client: Callable[[str], Any]) -> None:
    """Create the buckets with an image, and the endpoint. `client` returns a client of an AWS service."""
    s3, sagemaker = client("s3"), client("sagemaker")
    for bucket in ("scenes", "detections"):
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket="scenes", Key="harbour.png", Body=grey_png(_SIDE))
    role = "arn:aws:iam::000000000000:role/model"
    sagemaker.create_model(ModelName=ENDPOINT, ExecutionRoleArn=role, PrimaryContainer={})
    variant = {
        "VariantName": "only",
        "ModelName": ENDPOINT,
        "ServerlessConfig": {"MemorySizeInMB": 2048, "MaxConcurrency": _CONCURRENCY},
    }
    sagemaker.create_endpoint_config(EndpointConfigName=ENDPOINT, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName=ENDPOINT)


def grey_png(side: int) -> bytes:
    """Return a square image in grey, of black to white from left to right (PNG, ISO/IEC 15948)."""
    row = b"\0" + bytes(255 * column // side for column in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(row * side)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


class _Model(BaseHTTPRequestHandler):
    """Finds one ship in every tile, slowly."""

    answer: ClassVar[bytes] = json.dumps(_SHIP).encode()

    def do_POST(self) -> None:
        """Answer one tile."""
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(_MODEL_SECONDS)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def model_server() -> Iterator[str]:
    """Serve the model on the loopback interface, and yield its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Model) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, name="example-model", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
