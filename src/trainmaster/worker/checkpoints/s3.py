"""Checkpoints in S3, for nodes that share no file system.

`<prefix>/complete/<mark>.json` lists the files of a checkpoint, below `<prefix>/files/<mark>/<writer>/`, with their
sizes. It is put last, and only where there is none yet (`If-None-Match`): so a checkpoint is complete or not there, two
writers of one mark never mix, and the first stays. It must not know what is in a checkpoint.
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

from trainmaster.worker.checkpoints.checkpoints import Mark, files_of

TAKEN = frozenset({"PreconditionFailed", "ConditionalRequestConflict"})
"""What S3 answers where the object is there already, or is being put at this moment (PutObject, `If-None-Match`)."""


class S3Keeper:
    """See `checkpoints.Keeper`.

    Args:
        client: of S3.
        uri: such as `s3://bucket/prefix`; one for each job.

    Raises:
        ValueError: it is no such address.
    """

    def __init__(self, client: Any, uri: str) -> None:
        parts = urlsplit(uri)
        if parts.scheme != "s3" or not parts.netloc:
            raise ValueError(f"{uri} is no address in S3")
        self._client = client
        self._bucket = parts.netloc
        self._prefix = PurePosixPath(parts.path.strip("/"))

    def marks(self) -> list[Mark]:
        """See `checkpoints.Keeper`."""
        names = (PurePosixPath(key).stem for key in self._keys(f"{self._prefix / 'complete'}/"))
        return [mark for name in names if (mark := Mark.named(name))]

    def fetch(self, mark: Mark, into: Path) -> Path:
        """See `checkpoints.Keeper`. Raises `ValueError` for a list of files that leads elsewhere."""
        manifest = self._manifest(mark)
        for name in manifest["files"]:
            target = into / name
            if not target.resolve().is_relative_to(into.resolve()):
                raise ValueError(f"checkpoint {mark.name} has a file outside of it: {name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            self._client.download_file(self._bucket, self._file(mark, manifest["writer"], name), str(target))
        return into

    def publish(self, draft: Path, mark: Mark) -> None:
        """See `checkpoints.Keeper`."""
        writer, files = secrets.token_hex(8), files_of(draft)
        for name in files:
            self._client.upload_file(str(draft / name), self._bucket, self._file(mark, writer, name))
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=self._complete(mark),
                Body=json.dumps({"writer": writer, "files": files}).encode(),
                IfNoneMatch="*",
            )
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") not in TAKEN:
                raise
            self._delete(self._file(mark, writer, name) for name in files)

    def remove(self, mark: Mark) -> None:
        """See `checkpoints.Keeper`. The list goes first: without it there is no checkpoint."""
        self._delete([self._complete(mark)])
        self._delete(self._keys(f"{self._prefix / 'files' / mark.name}/"))

    def _manifest(self, mark: Mark) -> dict[str, Any]:
        answer = self._client.get_object(Bucket=self._bucket, Key=self._complete(mark))
        found: dict[str, Any] = json.loads(answer["Body"].read())
        return found

    def _complete(self, mark: Mark) -> str:
        return str(self._prefix / "complete" / f"{mark.name}.json")

    def _file(self, mark: Mark, writer: str, name: str) -> str:
        return str(self._prefix / "files" / mark.name / writer / name)

    def _keys(self, prefix: str) -> Iterator[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        for page in pages:
            yield from (found["Key"] for found in page.get("Contents", ()))

    def _delete(self, keys: Any) -> None:
        for key in list(keys):
            with suppress(self._client.exceptions.NoSuchKey):
                self._client.delete_object(Bucket=self._bucket, Key=key)
