"""API model of the reasons why a job waits, derived from the reasons of the domain."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from trainmaster.domain.reasons import REASONS
from trainmaster.domain.reasons import reason as domain
from trainmaster.handlers.models.base import ResponseModel


def members_of(kind: type[domain.Reason]) -> dict[str, tuple[Any, str]]:
    """Return the type and the description of each member of a reason, by its name in JSON."""
    hints = get_type_hints(kind, include_extras=True)
    return {to_camel(field.name): get_args(hints[field.name]) for field in fields(kind)}


def _add_members(schema: dict[str, Any]) -> None:
    """Add the members of all reasons to the JSON schema, as optional: a reason has those of its own type only."""
    types: dict[str, Any] = {}
    described: dict[str, dict[str, list[str]]] = {}
    for name, kind in REASONS.items():
        for member, (hint, text) in members_of(kind).items():
            types[member] = types.get(member) | hint
            described.setdefault(member, {}).setdefault(text, []).append(name)
    for member, hint in types.items():
        text = " ".join(f"{' and '.join(names)}: {text}" for text, names in described[member].items())
        schema["properties"][member] = TypeAdapter(hint).json_schema() | {"description": text}


class Reason(ResponseModel):
    """Reason for which a job waits. The members beside `type` and `message` depend on the type."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_add_members)

    type: Annotated[str, Field(json_schema_extra=lambda schema: schema.update(enum=list(REASONS)))]
    message: Annotated[str, Field(description="Reason as a sentence.")]


def reason_view(reason: domain.Reason | None) -> Reason | None:
    """Return a reason with its type, its message and its own members."""
    if reason is None:
        return None
    own: dict[str, Any] = {to_camel(field.name): getattr(reason, field.name) for field in fields(reason)}
    return Reason(type=type(reason).__name__, message=reason.message(), **own)
