"""Base classes of the API's models: camelCase members, and errors without the input."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

# A cold start imports all models and a request needs few: each is built when it is first used.
COMMON = ConfigDict(defer_build=True, hide_input_in_errors=True, alias_generator=to_camel)


class RequestModel(BaseModel):
    """Request of a caller; other members and types are refused."""

    model_config = ConfigDict(**COMMON, extra="forbid", strict=True)


class ResponseModel(BaseModel):
    """Response to a caller; every member is present, null if it has no value, unless its model says otherwise."""

    model_config = ConfigDict(**COMMON, populate_by_name=True)
