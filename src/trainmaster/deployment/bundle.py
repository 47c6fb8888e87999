"""Builds the Lambda bundles and the template from what the installed package has; equal input gives equal bytes."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainmaster.client.api.errors import NotConfigured, Refused

if TYPE_CHECKING:
    import yaml

MACHINES: Final[Mapping[str, str]] = {"arm64": "aarch64", "x86_64": "x86_64"}
"""Names that wheels have for Lambda's architectures."""
_TIME: Final = (1980, 1, 2, 0, 0, 0)
_FILE: Final = 0o100644 << 16
_BUILD_MEMBERS: Final = ("BuildMethod", "ContextPath")
Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True, slots=True)
class Sources:
    """Files that a deployment is built from.

    Attributes:
        template: the SAM template.
        builder: the program that assembles a bundle; its locks and the package are beside it or above.
    """

    template: Path
    builder: Path

    @classmethod
    def here(cls) -> Sources:
        """Return those of the installed package, or of the checkout that this module belongs to."""
        shipped = Path(__file__).with_name("shipped")
        if shipped.is_dir():
            return cls(shipped / "template.yaml", shipped / "build_bundle.py")
        root = Path(__file__).resolve().parents[3]
        return cls(root / "template.yaml", root / "src" / "build_bundle.py")

    def document(self) -> dict[str, Any]:
        """Return the template with its intrinsic functions in their long form."""
        return read_template(self.template.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Archive:
    """A file to upload.

    Attributes:
        key: name of the object, which follows from the content: equal content is uploaded once.
        body: the bytes.
    """

    key: str
    body: bytes


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a program and return what it printed."""
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own interpreter


def build(  # noqa: PLR0913, PLR0917 - the parts of a build
    sources: Sources, function: str, runtime: str, architecture: str, folder: Path, execute: Run = run
) -> tuple[Archive, str]:
    """Return the bundle of a function, and what the builder said of it, empty if nothing.

    It needs pip and the package index; a wheel without the locked hash is refused. Raises NotConfigured, Refused.
    """
    if find_spec("pip") is None:
        hint = "Add it: `python -m ensurepip`, or `uv pip install pip`."
        raise NotConfigured("The bundles need pip, which this environment does not have.", hint=hint)
    into = folder / function
    options = ["--python", runtime.removeprefix("python"), "--machine", MACHINES[architecture], "--into", str(into)]
    done = execute([sys.executable, str(sources.builder), function, *options])
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        hint = "Its packages come from the index that pip uses: check that `pip download pydantic` works here."
        raise Refused(f"The bundle of {function} cannot be built: {last}", type="BuildFailed", hint=hint)
    return archive(into, function), done.stdout.strip()


def archive(folder: Path, name: str) -> Archive:
    """Return a folder as a zip archive. Its key is of the content, for releases of zlib compress differently."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    whole, body = hashlib.sha256(), io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as zipped:
        for path in sorted(files):
            whole.update(f"{len(path.encode())} {path} {len(files[path])} ".encode() + files[path])
            entry = zipfile.ZipInfo(path, _TIME)
            entry.external_attr, entry.compress_type, entry.create_system = _FILE, zipfile.ZIP_DEFLATED, 3
            zipped.writestr(entry, files[path])
    return Archive(f"{name}-{whole.hexdigest()[:40]}.zip", body.getvalue())


def functions_of(document: Mapping[str, Any]) -> list[str]:
    """Return the logical ids of the functions that are built."""
    return [name for name, resource in document["Resources"].items() if "BuildMethod" in resource.get("Metadata", {})]


def packaged(document: Mapping[str, Any], locations: Mapping[str, str]) -> dict[str, Any]:
    """Return the template with the uploaded code of its functions (`s3://bucket/key` by logical id)."""
    whole: dict[str, Any] = json.loads(json.dumps(document))
    whole["Globals"]["Function"].pop("CodeUri", None)
    for name, location in locations.items():
        resource = whole["Resources"][name]
        resource["Properties"]["CodeUri"] = location
        for member in _BUILD_MEMBERS:
            resource["Metadata"].pop(member, None)
    return whole


def with_defaults(document: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """Return the template with these values as the defaults of its parameters."""
    changed = {name: {**document["Parameters"][name], "Default": value} for name, value in values.items()}
    return {**document, "Parameters": {**document["Parameters"], **changed}}


def with_table_name(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the template with the name of the queue's table written out.

    CloudFormation imports an existing resource by itself only if its name is no function of parameters (user guide,
    "Import AWS resources into a CloudFormation stack automatically").
    """
    table = document["Resources"]["QueueTable"]
    named = {**table, "Properties": {**table["Properties"], "TableName": name}}
    return {**document, "Resources": {**document["Resources"], "QueueTable": named}}


def template_archive(document: Mapping[str, Any]) -> Archive:
    """Return a template as JSON, which is YAML, too."""
    body = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    return Archive(f"template-{hashlib.sha256(body).hexdigest()[:40]}.json", body)


def read_template(text: str) -> dict[str, Any]:
    """Return a template in YAML with its short functions (`!Ref`) in their long form."""
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor("!", _function)
    document: dict[str, Any] = yaml.load(text, Loader)  # noqa: S506 - a SafeLoader
    return document


def _function(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> dict[str, Any]:
    import yaml

    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)  # type: ignore[arg-type]
    if name == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {name if name in ("Ref", "Condition") else f"Fn::{name}": value}
