"""Write the client's types from docs/reference/openapi.json; with --check, only compare.

The client's types are the schemas of successful responses, with `View` after their names, and those of `_REQUESTS`.
Schemas that a kind of jobs contributes become a module of this kind.
"""

from __future__ import annotations

import json
import keyword
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "reference" / "openapi.json"
TYPES = ROOT / "src" / "trainmaster" / "client" / "views" / "types.py"
KINDS = {ROOT / "src" / "trainmaster" / "images" / "client" / "types.py": ("ImageDetails", "Received")}
"""Modules of kinds of jobs, and the schemas that they have with those that these use."""
_PREFIX = "#/components/schemas/"
_REQUESTS = ("PoolSetting",)
_FREE = {"SettingsInForce": "dict[str, Any]"}
"""Schemas that the client handles as documents, and their types."""
_OF_KINDS = {name for names in KINDS.values() for name in names}
_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_HEAD = '''"""Types of the API's responses, member for member as in JSON. Times are ISO 8601 in UTC.

Written by scripts/client_types.py from docs/reference/openapi.json; do not edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired
'''


class Types:
    """Types of the schemas that the responses use."""

    def __init__(self, document: dict[str, Any], kind: Sequence[str] = ()) -> None:
        """Collect the schemas of a document, or those of a kind of jobs."""
        self._schemas = document["components"]["schemas"]
        self._requests = () if kind else _REQUESTS
        self._names: dict[str, str] = {name: name for name in self._requests}
        self._elsewhere = set() if kind else _OF_KINDS
        for name in kind:
            self._collect({"$ref": _PREFIX + name})
        for item in () if kind else document["paths"].values():
            for operation in item.values():
                for status, response in operation["responses"].items():
                    if status.startswith("2"):
                        self._collect(response)

    def _collect(self, part: Any) -> None:
        """Note every schema that a part of the document refers to."""
        if isinstance(part, list):
            for inner in part:
                self._collect(inner)
        elif isinstance(part, dict):
            name = part.get("$ref", "").removeprefix(_PREFIX)
            if name and name not in self._names and name not in self._elsewhere:
                schema = self._schemas[name]
                self._names[name] = name if "enum" in schema else f"{name}View"
                if name not in _FREE:
                    self._collect(schema)
            for key, inner in part.items():
                if key != "$ref":
                    self._collect(inner)

    def text(self) -> str:
        """Return the module."""
        for name in self._requests:
            self._collect(self._schemas[name])
        kinds = sorted(self._names, key=lambda name: ("enum" not in self._schemas[name], name))
        return _HEAD + "\n\n".join(self._declared(name) for name in kinds)

    def _declared(self, name: str) -> str:
        schema, own = self._schemas[name], self._names[name]
        text = " ".join(schema.get("description", "").partition("\n\n")[0].split())
        if name in _FREE:
            return f'\n{own} = {_FREE[name]}\n"""{text}"""'
        if "enum" in schema:
            return f"\n{own} = {self._type(schema)}\n" + (f'"""{text}"""' if text else "")
        members = dict(self._members(schema))
        if any(keyword.iskeyword(member) for member in members):
            listed = ", ".join(f'"{member}": {_deferred(kind)}' for member, kind in members.items())
            comment = "# In the functional form, because a member is a Python keyword."
            return f'\n{comment}\n{own} = TypedDict("{own}", {{{listed},}})\n"""{text}"""'
        lines = "\n".join(f"    {member}: {kind}" for member, kind in members.items())
        return f'\n\nclass {own}(TypedDict):\n    """{text}"""\n\n{lines}'

    def _members(self, schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
        required = schema.get("required", [])
        for member, inner in schema["properties"].items():
            kind = self._type(inner)
            yield member, kind if member in required else f"NotRequired[{kind}]"

    def _type(self, schema: dict[str, Any]) -> str:
        """Return the annotation for a schema."""
        if "$ref" in schema:
            return self._names.get(schema["$ref"].removeprefix(_PREFIX), "dict[str, Any]")
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(self._type(choice) for choice in schema["anyOf"]))
        if schema.get("enum", [])[:1] == ["training"]:
            return "str"  # each kind of jobs has its own value
        if "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            return f"Literal[{', '.join(json.dumps(value) for value in values)}]"
        if schema.get("type") == "array":
            return f"list[{self._type(schema['items'])}]"
        if schema.get("type") == "object":
            inner = schema.get("additionalProperties")
            return f"dict[str, {self._type(inner) if isinstance(inner, dict) else 'Any'}]"
        return _SCALARS[schema["type"]]


def _deferred(kind: str) -> str:
    """Return an annotation that is evaluated at once, quoted if it names a type that may be declared below."""
    return f'"{kind}"' if "View" in kind else kind


def generated(module: Path, kind: Sequence[str] = ()) -> str:
    """Return a module as it is committed."""
    text = Types(json.loads(DOCUMENT.read_text()), kind).text()
    for command in (["check", "--select=F401,I", "--fix", "-q"], ["format"]):
        whole = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(module), "-"]
        text = subprocess.run(whole, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> int:
    """Write the modules, or compare them."""
    texts = {TYPES: generated(TYPES)} | {module: generated(module, kind) for module, kind in KINDS.items()}
    stale = [module for module, text in texts.items() if not module.exists() or module.read_text() != text]
    if "--check" in sys.argv[1:]:
        names = ", ".join(str(module.relative_to(ROOT)) for module in stale)
        print(f"run scripts/{Path(__file__).name}: {names} is out of date" if stale else "up to date")
        return 1 if stale else 0
    for module in stale:
        module.write_text(texts[module])
    return 0


if __name__ == "__main__":
    sys.exit(main())
