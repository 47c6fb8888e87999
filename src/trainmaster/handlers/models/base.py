"""What the shapes that travel have in common: camelCase members, nothing of the input in errors."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

# A cold start imports all models and a request needs few: each is built when it is first used.
COMMON = ConfigDict(defer_build=True, hide_input_in_errors=True, alias_generator=to_camel)


class RequestModel(BaseModel):
    """What callers send: exactly these members and types, or a refusal."""

    model_config = ConfigDict(**COMMON, extra="forbid", strict=True)


class ResponseModel(BaseModel):
    """What callers get. Every member is always there, null where there is nothing to say, unless it says otherwise."""

    model_config = ConfigDict(**COMMON, populate_by_name=True)
