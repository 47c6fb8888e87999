"""Reads Kubernetes manifests of any kind and records which fields were used, to report the others."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, TypeVar

from trainmaster.client.api.errors import Refused
from trainmaster.domain.requests.fields import shown

T = TypeVar("T")
Path = tuple[str | int, ...]
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_EXPECTED = {str: "a string, quoted where YAML would read another type", int: "a non-negative integer"}


def parse_documents(text: str) -> list[object]:
    """Return the values of a text's YAML documents that are not empty (YAML includes JSON). Raises ValueError.

    Only plain values are constructed (`SafeLoader`). A duplicate key is an error, as in Kubernetes.
    """
    import yaml  # deferred: requests in JSON do not need it

    class StrictLoader(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - its base's own signature
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            for key in keys:
                if keys.count(key) > 1:
                    raise ValueError(f"{shown(key)} is a duplicate key,{node.start_mark}")
            return super().construct_mapping(node, deep=deep)

    try:
        return [value for value in yaml.load_all(text, Loader=StrictLoader) if value is not None]
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


class ManifestReader:
    """A manifest and the record of which of its fields were used."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._root = manifest
        self._used: set[Path] = set()
        self._notes: dict[Path, str] = {}

    def take(self, kind: type[T], *path: str | int) -> T | None:
        """Return the value and mark it as used; None if absent. Raises Refused for another type.

        Numbers are non-negative integers.
        """
        value = self.peek(*path)
        self.mark_used(*path)
        if value is None:
            return None
        is_valid = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not is_valid or (isinstance(value, int) and value < 0):
            raise invalid_field(path, f"is {shown(value)}", f"Specify {_EXPECTED.get(kind, 'true or false')}.")
        found: T = value
        return found

    def mark_used(self, *path: str | int) -> None:
        """Mark the value at the path as used."""
        self._used.add(path)

    def accept_default(self, default: object, *path: str | int) -> None:
        """Mark a field as used if its value is the default, which needs no support."""
        if self.peek(*path) == default:
            self.take(type(default), *path)

    def peek(self, *path: str | int) -> Any:
        """Return the value without marking it as used; None if absent."""
        value: Any = self._root
        for key in path:
            if isinstance(value, Mapping):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value

    def items(self, *path: str | int) -> list[Any]:
        """Return the list at the path, empty if absent. Raises Refused for another type."""
        found = self.peek(*path)
        self._used.add((*path, ""))  # so that entries are reported one by one
        if found is not None and not isinstance(found, list):
            raise invalid_field(path, f"is {shown(found)}", "Specify a list.")
        return found or []

    def note(self, reason: str, *path: str | int) -> None:
        """Record why a field and all fields below it are not honored, or only partly if it is marked as used."""
        if self.peek(*path) is not None:
            self._notes[path] = reason

    def unused(self) -> Iterator[tuple[Path, str | None]]:
        """Iterate over path and note of all fields that are not honored; of unknown objects only the topmost."""
        partial = [path for path in self._notes if path in self._used]
        for path in dict.fromkeys([*self._unused_paths((), self._root), *partial]):
            yield (
                path,
                next((self._notes[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self._notes), None),
            )

    def _unused_paths(self, path: Path, value: object) -> Iterator[Path]:
        if path in self._used or _is_empty(value):
            return
        children: list[tuple[str | int, object]] = []
        if isinstance(value, Mapping):
            children = list(value.items())
        elif isinstance(value, list):
            children = list(enumerate(value))
        below = [*self._used, *(note for note in self._notes if note != path)]
        if children and any(each[: len(path)] == path for each in below):
            for key, child in children:
                yield from self._unused_paths((*path, key), child)
        else:
            yield path


def format_path(path: Path) -> str:
    """Format a path as `spec.replicaSpecs[0].replicas`; keys with other characters in brackets."""
    text = ""
    for key in path:
        is_plain = isinstance(key, str) and _PLAIN.fullmatch(key)
        text += f".{key}" if is_plain else f"[{key}]"
    return text.removeprefix(".")


def invalid_field(path: Path, problem: str, hint: str) -> Refused:
    """Return the error for an invalid field of a manifest."""
    field = format_path(path)
    return Refused(f"{field} {problem}.", type="InvalidFile", field=field, hint=hint)


def _is_empty(value: object) -> bool:
    """Return whether the value contains nothing, at any depth."""
    if isinstance(value, Mapping):
        return all(map(_is_empty, value.values()))
    return all(map(_is_empty, value)) if isinstance(value, list) else value is None
