"""Checkpoints in S3, for nodes that share no file system.

`<prefix>/complete/<checkpoint>.json` lists the files of a checkpoint, below `<prefix>/files/<checkpoint>/<writer>/`,
with their sizes. It is written last, and only if it does not exist (`If-None-Match`). A checkpoint is therefore
complete or absent, two writers of one checkpoint never mix, and the first stays.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from trainmaster.worker.checkpoints.checkpoints import JOBS, CheckpointId, files_of, numbers_in

ALREADY_EXISTS_CODES = frozenset({"PreconditionFailed", "ConditionalRequestConflict"})
"""Error codes of S3 if the object exists or is being written (PutObject, `If-None-Match`)."""


class S3Store:
    """See `checkpoints.CheckpointStore`.

    Args:
        client: an S3 client.
        uri: such as `s3://bucket/prefix`; one for each job.

    Raises:
        ValueError: it is not an S3 URI.
    """

    def __init__(self, client: Any, uri: str) -> None:
        parts = urlsplit(uri)
        if parts.scheme != "s3" or not parts.netloc:
            raise ValueError(f"{uri} is not an S3 URI")
        self._client = client
        self._bucket = parts.netloc
        self._prefix = PurePosixPath(parts.path.strip("/"))

    def checkpoint_ids(self) -> list[CheckpointId]:
        """Return all complete checkpoints; see `checkpoints.CheckpointStore`."""
        names = (PurePosixPath(key).stem for key in self._list_keys(f"{self._prefix / 'complete'}/"))
        return [checkpoint_id for name in names if (checkpoint_id := CheckpointId.parse(name))]

    def remains(self) -> list[CheckpointId]:
        """Return what has files but no list of them; see `checkpoints.CheckpointStore`."""
        found = (CheckpointId.parse(name) for name in self._folders(f"{self._prefix / 'files'}/"))
        return list({checkpoint_id for checkpoint_id in found if checkpoint_id} - set(self.checkpoint_ids()))

    def attempts_before(self, job: str, otherwise: int) -> int:
        """Return the number of attempts before a job's first; see `checkpoints.CheckpointStore`."""
        folder = self._prefix / JOBS / job
        if not (known := numbers_in(PurePosixPath(key).name for key in self._list_keys(f"{folder}/"))):
            self._client.put_object(Bucket=self._bucket, Key=str(folder / str(otherwise)), Body=b"")
        return max(known, default=otherwise)

    def fetch(self, checkpoint_id: CheckpointId, into: Path) -> Path:
        """Download a checkpoint; see `checkpoints.CheckpointStore`.

        Raises:
            ValueError: a path in the list of files leads outside the directory.
        """
        manifest = self._read_manifest(checkpoint_id)
        for name in manifest["files"]:
            target = into / name
            if not target.resolve().is_relative_to(into.resolve()):
                raise ValueError(f"checkpoint {checkpoint_id.name} lists a file outside its directory: {name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            self._client.download_file(
                self._bucket, self._file_key(checkpoint_id, manifest["writer"], name), str(target)
            )
        return into

    def publish(self, draft: Path, checkpoint_id: CheckpointId) -> None:
        """Publish a checkpoint; see `checkpoints.CheckpointStore`."""
        writer, files = secrets.token_hex(8), files_of(draft)
        for name in files:
            self._client.upload_file(str(draft / name), self._bucket, self._file_key(checkpoint_id, writer, name))
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=self._manifest_key(checkpoint_id),
                Body=json.dumps({"writer": writer, "files": files}).encode(),
                IfNoneMatch="*",
            )
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") not in ALREADY_EXISTS_CODES:
                raise
            # A put whose response was lost is sent again, and then finds its own list.
            if self._read_manifest(checkpoint_id)["writer"] != writer:
                self._delete(self._file_key(checkpoint_id, writer, name) for name in files)

    def remove(self, checkpoint_id: CheckpointId, trash: Path) -> None:  # noqa: ARG002  # S3 needs none
        """Delete a checkpoint; the list goes first, since there is no checkpoint without it."""
        self._delete([self._manifest_key(checkpoint_id)])
        self._delete(self._list_keys(f"{self._prefix / 'files' / checkpoint_id.name}/"))

    def _read_manifest(self, checkpoint_id: CheckpointId) -> dict[str, Any]:
        response = self._client.get_object(Bucket=self._bucket, Key=self._manifest_key(checkpoint_id))
        manifest: dict[str, Any] = json.loads(response["Body"].read())
        return manifest

    def _manifest_key(self, checkpoint_id: CheckpointId) -> str:
        return str(self._prefix / "complete" / f"{checkpoint_id.name}.json")

    def _file_key(self, checkpoint_id: CheckpointId, writer: str, name: str) -> str:
        return str(self._prefix / "files" / checkpoint_id.name / writer / name)

    def _folders(self, prefix: str) -> Iterator[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=prefix, Delimiter="/"
        )
        for page in pages:
            yield from (PurePosixPath(item["Prefix"]).name for item in page.get("CommonPrefixes", ()))

    def _list_keys(self, prefix: str) -> Iterator[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        for page in pages:
            yield from (item["Key"] for item in page.get("Contents", ()))

    def _delete(self, keys: Any) -> None:
        for key in list(keys):
            with suppress(self._client.exceptions.NoSuchKey):
                self._client.delete_object(Bucket=self._bucket, Key=key)
