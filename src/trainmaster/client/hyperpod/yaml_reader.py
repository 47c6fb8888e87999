"""Reads Kubernetes manifests, and keeps account of what of one was read: the rest is what nobody honours.

It must not know any kind of manifest.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, TypeVar

from trainmaster.client.api.errors import Refused
from trainmaster.domain.requests.fields import shown

T = TypeVar("T")
Path = tuple[str | int, ...]
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_TAKES = {str: "a text, in quotation marks where YAML would read it otherwise", int: "a whole number from 0"}


def in_yaml(text: str) -> object:
    """What the one YAML document of a text says; YAML has JSON in it. Raises ValueError.

    Only plain values are made of it (`SafeLoader`); a key that is there twice is an error, as it is to Kubernetes.
    """
    import yaml  # not needed by whoever submits requests in JSON

    class Strict(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - its base's own signature
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            for key in keys:
                if keys.count(key) > 1:
                    raise ValueError(f"{shown(key)} is there twice,{node.start_mark}")
            return super().construct_mapping(node, deep=deep)

    try:
        documents = [each for each in yaml.load_all(text, Loader=Strict) if each is not None]
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    if len(documents) != 1:
        raise ValueError(f"there are {len(documents)} documents, and one is needed")
    return documents[0]


class Reader:
    """A manifest, with what of it has been asked for."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._root = manifest
        self._asked: set[Path] = set()
        self._notes: dict[Path, str] = {}

    def take(self, kind: type[T], *path: str | int) -> T | None:
        """The value there, which is honoured from then on; None where there is none. Raises Refused for another kind.

        Numbers are whole, and not below 0.
        """
        value = self.look(*path)
        self.honour(*path)
        if value is None:
            return None
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not fits or (isinstance(value, int) and value < 0):
            raise wrong(path, f"is {shown(value)}", f"It takes {_TAKES.get(kind, 'true or false')}.")
        found: T = value
        return found

    def honour(self, *path: str | int) -> None:
        """What is there is honoured from now on."""
        self._asked.add(path)

    def look(self, *path: str | int) -> Any:
        """The value there, without any promise to honour it; None where there is none."""
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
        """The list there, empty where there is none. Raises Refused for anything else."""
        found = self.look(*path)
        self._asked.add((*path, ""))  # so that its entries are judged one by one
        if found is not None and not isinstance(found, list):
            raise wrong(path, f"is {shown(found)}", "It takes a list.")
        return found or []

    def note(self, why: str, *path: str | int) -> None:
        """Why something, and all below it, is not honoured; or not wholly, where it has been taken."""
        if self.look(*path) is not None:
            self._notes[path] = why

    def left(self, reasons: Mapping[str, str], otherwise: str) -> Iterator[tuple[str, str]]:
        """All that is not honoured, each as its path and why; of what is not known at all the topmost.

        `reasons` are by path without indexes; those of a path hold for all below it that has none of its own.
        """
        partly = [path for path in self._notes if path in self._asked]
        for path in dict.fromkeys([*self._left((), self._root), *partly]):
            noted = next(
                (self._notes[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self._notes), None
            )
            yield shown_path(path), noted or _reason(path, reasons) or otherwise

    def _left(self, path: Path, value: object) -> Iterator[Path]:
        if path in self._asked or _says_nothing(value):
            return
        inside: list[tuple[str | int, object]] = []
        if isinstance(value, Mapping):
            inside = list(value.items())
        elif isinstance(value, list):
            inside = list(enumerate(value))
        if inside and any(asked[: len(path)] == path for asked in self._asked):
            for key, each in inside:
                yield from self._left((*path, key), each)
        else:
            yield path


def shown_path(path: Path) -> str:
    """As `spec.replicaSpecs[0].replicas`; keys with other signs in them in brackets."""
    text = ""
    for key in path:
        plain = isinstance(key, str) and _PLAIN.fullmatch(key)
        text += f".{key}" if plain else f"[{key}]"
    return text.removeprefix(".")


def wrong(path: Path, what: str, hint: str) -> Refused:
    """The refusal of a manifest for one of its fields."""
    field = shown_path(path)
    return Refused(f"{field} {what}.", type="InvalidFile", field=field, hint=hint)


def _says_nothing(value: object) -> bool:
    """Whether there is nothing in it, however deep."""
    if isinstance(value, Mapping):
        return all(map(_says_nothing, value.values()))
    return all(map(_says_nothing, value)) if isinstance(value, list) else value is None


def _reason(path: Path, reasons: Mapping[str, str]) -> str | None:
    words = [str(key) for key in path if not isinstance(key, int)]
    return next((reasons[at] for end in range(len(words), 0, -1) if (at := ".".join(words[:end])) in reasons), None)
