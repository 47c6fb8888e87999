"""API model of the settings: GET and PUT /settings, derived from the declarations of `domain.policy.settings`.

The model checks names, types and bounds; `domain.policy.problems` checks the rules between settings.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, is_dataclass
from datetime import timedelta
from enum import Enum
from typing import Annotated, Any, get_args, get_origin

from pydantic import ConfigDict, Field, create_model

from trainmaster.domain.document import Document
from trainmaster.domain.policy.declaration import Member, Setting, is_mapping, members_of
from trainmaster.domain.policy.document import settings_document
from trainmaster.domain.policy.settings import Policy
from trainmaster.handlers.models.base import RequestModel
from trainmaster.ports.store import QueueSettings

_EXAMPLE: dict[str, Any] = {
    "order": "backfill",
    "preemption": {"minRuntimeSeconds": 600, "cooldownSeconds": 1800},
    "shares": {
        "vision": {
            "nominal": {"ml.p5.48xlarge": 4},
            "lends": {"ml.p5.48xlarge": 2},
            "budget": {"gpuHours": 20000, "whenSpent": "wait"},
        },
        "speech": {"nominal": {"ml.p5.48xlarge": 2}, "lending": "reserve"},
    },
    "version": 3,
}


def model_of(kind: type, name: str) -> type[RequestModel]:
    """Return the model of a dataclass of settings."""
    fields: dict[str, Any] = {member.field.name: (_type(member), _field(member)) for member in members_of(kind)}
    summary = inspect.getdoc(kind) or ""
    return create_model(name, __base__=RequestModel, __doc__=summary.partition("\n\n")[0], **fields)


def _type(member: Member) -> Any:
    inner = _inner(member.type, member.setting, member.field.name)
    return inner | None if member.optional else inner


def _inner(hint: Any, setting: Setting, name: str) -> Any:
    """Return the type in the model for a type in the declaration."""
    if is_mapping(hint):
        return _mapping(get_args(hint)[1], setting, name)
    if get_origin(hint) is tuple:
        return list[_inner(get_args(hint)[0], setting, name)]  # type: ignore[misc]
    if is_dataclass(hint):
        return model_of(hint, f"{hint.__name__}Settings")  # type: ignore[arg-type, union-attr]
    if issubclass(hint, Enum):
        return Annotated[hint, Field(strict=False)]
    if hint in (bool, str):
        return hint
    return _number(int if hint is int else float, setting)


def _mapping(values: Any, setting: Setting, name: str) -> Any:
    """Return a model with one member for each allowed key, or a dictionary if any key is allowed."""
    inner = _inner(values, setting, name)
    if setting.keys is None:
        return dict[str, inner]  # type: ignore[valid-type]
    fields: dict[str, Any] = {
        key: (inner, Field(default_factory=inner, description=text)) for key, text in setting.keys.items()
    }
    return create_model(f"{name.capitalize()}Settings", __base__=RequestModel, __doc__=setting.doc, **fields)


def _number(kind: type, setting: Setting) -> Any:
    lowest = {"gt": setting.minimum} if setting.above_minimum else {"ge": setting.minimum}
    bounds: dict[str, Any] = lowest if setting.maximum is None else lowest | {"le": setting.maximum}
    return Annotated[kind, Field(**bounds) if kind is int else Field(**bounds, allow_inf_nan=False)]


def _field(member: Member) -> Any:
    """Return the field of a member; the document shows only defaults that hold everywhere."""
    setting, default = member.setting, member.default()
    if isinstance(default, timedelta):
        default = default.total_seconds()
    shown = member.field.default is not MISSING and not setting.default and not isinstance(default, tuple)
    given: dict[str, Any] = {"default": default} if shown else {"default_factory": lambda: default}
    if setting.example:
        given["examples"] = [list(setting.example)]
    return Field(alias=member.name, description=setting.doc, **given)


class Settings(model_of(Policy, "Settings")):  # type: ignore[misc]
    """All settings but the pools. An omitted member has its default value, and an omitted share is removed."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    version: Annotated[
        int | None,
        Field(ge=0, description="Expected version in force, pools included; otherwise the request is rejected (409)."),
    ] = None

    @property
    def document(self) -> Document:
        """The members that the caller gave."""
        document: Document = self.model_dump(by_alias=True, exclude_unset=True, exclude={"version"})
        return document


class SettingsInForce(Settings):
    """All settings but the pools, and the version to name when changing them."""

    version: int


def in_force(settings: QueueSettings) -> Document:
    """Return the settings as `SettingsInForce` describes them."""
    return {**settings_document(settings.policy), "version": settings.version}
