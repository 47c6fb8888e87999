"""Copies of S3 objects: input channels to a container's folders, artifacts and checkpoints back to S3."""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.local.simulator.containers.hosts import Host


class TransferFailed(Exception):
    """Objects could not be read or written; the message says which."""


class ObjectStore:
    """S3 through a boto3 client. All methods raise TransferFailed."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def keys(self, uri: str) -> tuple[str, list[str]]:
        """Return the bucket of a URI, and the keys that begin with its prefix."""
        bucket, prefix = split_uri(uri)
        try:
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            return bucket, [each["Key"] for page in pages for each in page.get("Contents", [])]
        except (ClientError, BotoCoreError) as error:
            raise TransferFailed(f"{uri}: {error}") from error

    def download(self, bucket: str, key: str, path: Path) -> None:
        """Write one object to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._client.download_file(bucket, key, str(path))
        except (ClientError, BotoCoreError) as error:
            raise TransferFailed(f"s3://{bucket}/{key}: {error}") from error

    def upload(self, path: Path, uri: str) -> None:
        """Write one file to an object, in a bucket that is created if it does not exist."""
        bucket, key = split_uri(uri)
        try:
            if not self._has(bucket):
                self._client.create_bucket(Bucket=bucket)
            self._client.upload_file(str(path), bucket, key)
        except (ClientError, BotoCoreError, S3UploadFailedError, OSError) as error:
            raise TransferFailed(f"{uri}: {error}") from error

    def download_folder(self, uri: str, folder: Path) -> None:
        """Write all objects below a prefix, if there are any."""
        if self._has(split_uri(uri)[0]):
            bucket, keys = self.keys(uri)
            for key, path in local_paths(uri, keys).items():
                self.download(bucket, key, folder / path)

    def upload_folder(self, folder: Path, uri: str) -> None:
        """Write all files of a folder below a prefix."""
        for path in _files(folder):
            self.upload(path, f"{uri.rstrip('/')}/{path.relative_to(folder).as_posix()}")

    def _has(self, bucket: str) -> bool:
        try:
            self._client.head_bucket(Bucket=bucket)
        except (ClientError, BotoCoreError):
            return False
        return True


def split_uri(uri: str) -> tuple[str, str]:
    """Return the bucket and the key of an S3 URI."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key


def local_paths(uri: str, keys: Iterable[str]) -> dict[str, PurePosixPath]:
    """Return the relative path of each object of a prefix, by key; no path leaves the folder.

    Paths are relative to the prefix if it names a folder, else to the folder that it is in.
    """
    _, prefix = split_uri(uri)
    folder = prefix if prefix.endswith("/") or not prefix else f"{prefix}/"
    parent = prefix.rpartition("/")[0]
    below = {key: key[len(folder) :] if key.startswith(folder) else key[len(parent) :].lstrip("/") for key in keys}
    paths = {key: PurePosixPath(path) for key, path in below.items() if path and not path.endswith("/")}
    return {
        key: path for key, path in paths.items() if path.parts and ".." not in path.parts and not path.is_absolute()
    }


def download_channel(store: ObjectStore, channel: Mapping[str, Any], hosts: tuple[Host, ...], host: Host,
                     folder: Path) -> None:  # fmt: skip
    """Write the objects of an input channel that this instance gets. Raises TransferFailed, also without objects."""
    source = channel["DataSource"].get("S3DataSource")
    if source is None:
        raise TransferFailed(
            f"channel {channel['ChannelName']}: this machine has no file systems of EFS or FSx; use an S3DataSource"
        )
    groups = source.get("InstanceGroupNames")
    sharers = [each for each in hosts if not groups or each.group in groups]
    if host not in sharers:
        return
    found = _objects(store, source)
    if not found:
        raise TransferFailed(f'no S3 objects found under "{source["S3Uri"]}" (channel {channel["ChannelName"]})')
    if source.get("S3DataDistributionType") == "ShardedByS3Key":
        found = found[sharers.index(host) :: len(sharers)]
    for bucket, key, path in found:
        store.download(bucket, key, folder / path)


def _objects(store: ObjectStore, source: Mapping[str, Any]) -> list[tuple[str, str, PurePosixPath]]:
    """Return bucket, key and relative path of each object of a data source."""
    uri, kind = source["S3Uri"], source.get("S3DataType", "S3Prefix")
    if kind == "ManifestFile":
        return _manifest_objects(store, uri)
    if kind != "S3Prefix":
        raise TransferFailed(f"{uri}: the simulator reads no {kind}, only S3Prefix and ManifestFile")
    bucket, keys = store.keys(uri)
    return [(bucket, key, path) for key, path in local_paths(uri, keys).items()]


def _manifest_objects(store: ObjectStore, uri: str) -> list[tuple[str, str, PurePosixPath]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "manifest")
        store.download(*split_uri(uri), path)
        try:
            first, *names = json.loads(path.read_text())
            bucket, prefix = split_uri(first["prefix"])
        except (ValueError, TypeError, KeyError) as error:
            raise TransferFailed(f"{uri} is no manifest: {error!r}") from error
    return [(bucket, prefix + name, PurePosixPath(name)) for name in names]


def upload_artifacts(store: ObjectStore, request: Mapping[str, Any], bases: Iterable[Path], *, failed: bool) -> None:
    """Write `model.tar.gz`, unless the job failed, and `output.tar.gz`, of all instances. Raises TransferFailed."""
    config = request["OutputDataConfig"]
    uri = f"{config['S3OutputPath'].rstrip('/')}/{request['TrainingJobName']}/output"
    folders = list(bases)
    if not failed:
        _upload_tree(store, [base / "model" for base in folders], f"{uri}/model", config)
    results = [base / "output" / "data" for base in folders]
    if any(_files(folder) for folder in results):
        _upload_tree(store, results, f"{uri}/output", config)


def _upload_tree(store: ObjectStore, folders: list[Path], uri: str, config: Mapping[str, Any]) -> None:
    if config.get("CompressionType") == "NONE":
        for folder in folders:
            store.upload_folder(folder, uri)
        return
    with tempfile.NamedTemporaryFile(suffix=".tar.gz") as file:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            for folder in folders:
                for path in _files(folder):
                    archive.add(path, path.relative_to(folder).as_posix())
        file.flush()
        store.upload(Path(file.name), f"{uri}.tar.gz")


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
