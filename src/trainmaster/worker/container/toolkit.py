"""The variables of SageMaker's training toolkit, for scripts that `trainmaster-run` starts in its place.

Sources are the files that SageMaker writes into each container; the toolkit (sagemaker-training) reads the same.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainmaster.worker.container.container import Container

_TOOLKITS_OWN = "sagemaker_"
"""Prefix of hyperparameters for the toolkit itself."""
_MAX_BYTES = 100_000
"""Bytes of a variable; Linux starts no program with one of 131,072 (execve(2), MAX_ARG_STRLEN)."""


def toolkit_variables(container: Container) -> dict[str, str]:
    """Return the hyperparameters, channels, directories and hosts; a file that cannot be read has none."""
    base, config = container.base, container.base / "input" / "config"
    parameters = {
        name: _decoded(value)
        for name, value in _read(config / "hyperparameters.json").items()
        if not name.startswith(_TOOLKITS_OWN)
    }
    channels = {name: str(base / "input" / "data" / name) for name in sorted(_read(config / "inputdataconfig.json"))}
    values = {
        **dict(_named("SM_HP_", parameters)),
        **dict(_named("SM_CHANNEL_", channels)),
        "SM_HPS": parameters,
        "SM_CHANNELS": list(channels),
        "SM_INPUT_DIR": str(base / "input"),
        "SM_INPUT_CONFIG_DIR": str(config),
        "SM_MODEL_DIR": str(base / "model"),
        "SM_OUTPUT_DIR": str(base / "output"),
        "SM_OUTPUT_DATA_DIR": str(base / "output" / "data"),
        "SM_HOSTS": list(container.hosts),
        "SM_CURRENT_HOST": container.host,
        "SM_NUM_CPUS": os.cpu_count() or 1,
        "SM_NUM_GPUS": len(list(Path("/dev").glob("nvidia[0-9]*"))),
    }
    texts = {name: value if isinstance(value, str) else _as_json(value) for name, value in values.items()}
    return {name: text for name, text in texts.items() if len(text.encode()) < _MAX_BYTES}


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _decoded(value: Any) -> Any:
    """Return a hyperparameter's value: the SDKs send JSON, other clients any text."""
    try:
        return json.loads(value)
    except (ValueError, TypeError):
        return value


def _named(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each value under the toolkit's name for it, and under one that a shell can read, without hyphens."""
    for name, value in values.items():
        upper = name.upper()
        yield prefix + re.sub(r"[^A-Z0-9]", "_", upper), value
        yield prefix + upper, value


def _as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
