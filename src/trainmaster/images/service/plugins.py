"""Settings that name plug-ins: sensor models of a deployment's own, and the heights of the ground."""

from __future__ import annotations

import re

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.requests.fields import shown

PLUGIN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
"""A plug-in: `module:function`."""
S3 = "s3://"


def parse_sensor_models(text: str) -> tuple[str, ...]:
    """Return the plug-ins of a setting, separated by commas. Raises `InvalidRequest` for another form."""
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    for name in names:
        if not PLUGIN.fullmatch(name):
            hint = "Name a function of a module in a layer, such as sensors.sidd:model."
            raise InvalidRequest(f"{shown(name)} is no plug-in", field="SENSOR_MODELS", hint=hint)
    return names


def parse_elevation(text: str) -> str:
    """Return the value of the setting. Raises `InvalidRequest` for one that names no raster and no plug-in."""
    value = text.strip()
    if value and not is_raster(value) and not PLUGIN.fullmatch(value):
        hint = "Name a raster, as s3://bucket/key or a path below /opt/, or a function, as module:function."
        raise InvalidRequest(f"{shown(value)} is no elevation", field="ELEVATION", hint=hint)
    return value


def is_raster(value: str) -> bool:
    """Return whether the value names a raster, and not a plug-in."""
    return value.startswith((S3, "/"))
