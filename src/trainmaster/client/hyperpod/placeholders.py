"""Recognizes templates that another program has to fill in first, and names the command that does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from trainmaster.client.api.errors import Refused
from trainmaster.domain.requests.fields import part

_HELM = re.compile(
    r"\{\{-?\s*(?:[.$]|/\*|\"|`|(?:if|else|end|range|with|define|template|block|include|toYaml|tpl|required|printf)\b)"
)
_OTHER = re.compile(r"\{\{[^{}\n]{0,80}\}\}|\{%[^%\n]{0,80}%\}")
_SHELL = re.compile(r"(?<!\$)\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_ANGLE = re.compile(r"<[A-Za-z][^<>\n]{0,60}>")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash"})
_FREE = frozenset(
    {
        *("command", "args", "env", "data", "stringData", "annotations", "description", "logPattern"),
        *("hyperParameters", "environment"),
    }
)
"""Fields with texts of the user, in which these characters have another meaning."""


def check_text(text: str, file: str) -> None:
    """Raise Refused if a text that is not valid YAML is a template."""
    if _HELM.search(text):
        raise Refused(f"{_shown(file)} is a Helm template, not a manifest.", type="InvalidFile", hint=_helm_hint(file))
    found = _OTHER.search(text)
    if found:
        raise _unfilled(file, found[0])


def check_placeholders(manifest: Mapping[str, Any], file: str, base: Mapping[str, Any] | None = None) -> None:
    """Raise Refused if fields such as replicas contain placeholders, unless `base` sets the field."""
    is_set = {
        "image": "TrainingImage" in part(base, "AlgorithmSpecification"),
        "nodeSelector": "InstanceType" in part(base, "ResourceConfig"),
        "affinity": "InstanceType" in part(base, "ResourceConfig"),
    }
    texts = list(_texts(manifest, _FREE | {name for name, value in is_set.items() if value}))
    for text in texts:
        if "{{" in text or "{%" in text:
            check_text(text, file)
    names = [name for text in texts for name in shell_names(text)]
    if names:
        names += [name for text in _command_texts(manifest) for name in shell_names(text)]
        names = list(dict.fromkeys(names))
        variables = " ".join(f"${name}" for name in names)
        raise Refused(
            f"{_shown(file)} has placeholders: {', '.join(names)}.",
            type="InvalidFile",
            hint=f"Export them, then run: envsubst '{variables}' < {'FILE' if file == '-' else file} > rendered.yaml",
        )
    angle = next((match for text in texts if (match := _ANGLE.search(text))), None)
    if angle:
        raise _unfilled(file, angle[0])


def shell_names(text: str) -> list[str]:
    """Return the names of shell variables in a text."""
    return [match[1] or match[2] for match in _SHELL.finditer(text)]


def is_shell(program: str) -> bool:
    """Return whether a program is a shell, which expands variables itself."""
    return program.rpartition("/")[2] in _SHELLS


def _unfilled(file: str, placeholder: str) -> Refused:
    return Refused(
        f"{_shown(file)} has a placeholder: {placeholder}.",
        type="InvalidFile",
        hint="Replace it, or render the template with the program that it belongs to, and submit the result.",
    )


def _helm_hint(file: str) -> str:
    """Return the command that renders a template; it names the chart if the file is in one."""
    path = Path(file)
    chart = (
        next((parent for parent in path.parents if (parent / "Chart.yaml").is_file()), None) if file != "-" else None
    )
    if chart is None:
        return "Render it first: helm template NAME CHART --show-only templates/FILE > rendered.yaml"
    relative = path.relative_to(chart).as_posix()
    if relative.startswith("templates/"):
        return f"Render it first: helm template NAME {chart} --show-only {relative} > rendered.yaml"
    return (
        f"Helm reads templates from {chart / 'templates'}: copy the file there, then run: "
        f"helm template NAME {chart} --show-only templates/{path.name} > rendered.yaml"
    )


def _texts(value: object, without: AbstractSet[object]) -> Iterator[str]:
    """Iterate over the texts of a manifest outside some fields."""
    if isinstance(value, str):
        yield value
    for key, item in _children(value):
        if key not in without:
            yield from _texts(item, without)


def _command_texts(value: object) -> Iterator[str]:
    """Iterate over the texts of commands without a shell and of environment variables."""
    if isinstance(value, Mapping) and isinstance(value.get("command") or value.get("args"), list):
        words = [word for name in ("command", "args") for word in value.get(name) or () if isinstance(word, str)]
        yield from () if words and is_shell(words[0]) else words
        for variable in value.get("env") or ():
            yield str(variable.get("value", "")) if isinstance(variable, Mapping) else ""
    for key, item in _children(value):
        if key not in _FREE:
            yield from _command_texts(item)


def _children(value: object) -> Iterator[tuple[object, object]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list):
        for item in value:
            yield None, item


def _shown(file: str) -> str:
    return "Standard input" if file == "-" else file
