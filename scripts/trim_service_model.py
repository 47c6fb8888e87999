"""Cut botocore's SageMaker service model down to the operations that the queue calls.

It writes `src/trainmaster/adapters/sagemaker/models/sagemaker/2017-07-24/service-2.json` (see ADR 0004). With
`--check` it says whether that file is what the installed botocore gives. It only leaves things out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import botocore
from botocore.loaders import Loader

OPERATIONS = (
    "AddTags",
    "CreateTrainingJob",
    "DescribeEndpoint",
    "DescribePipeline",
    "DescribePipelineExecution",
    "DescribeTrainingJob",
    "DescribeTrainingPlan",
    "ListTags",
    "ListTrainingJobs",
    "SendPipelineExecutionStepFailure",
    "SendPipelineExecutionStepSuccess",
    "StopTrainingJob",
    "UpdateTrainingJob",
)
API_VERSION = "2017-07-24"
MODELS = Path(__file__).parents[1] / "src" / "trainmaster" / "adapters" / "sagemaker" / "models"
TARGET = MODELS / "sagemaker" / API_VERSION / "service-2.json"

Json = Mapping[str, Any]


def installed_model() -> Json:
    """The whole model as botocore ships it, whatever AWS_DATA_PATH or ~/.aws/models may hold."""
    loader = Loader(extra_search_paths=[Loader.BUILTIN_DATA_PATH], include_default_search_paths=False)
    model: Json = loader.load_service_model("sagemaker", "service-2", API_VERSION)
    return model


def trim(model: Json, operations: Iterable[str], botocore_version: str) -> dict[str, Any]:
    """A model with those operations, the shapes that they reach, and no documentation."""
    kept = {name: _undocumented(model["operations"][name]) for name in sorted(operations)}
    shapes = {name: _undocumented(model["shapes"][name]) for name in sorted(_closure(model["shapes"], kept))}
    return {
        "version": model["version"],
        "trimmedFrom": {"package": "botocore", "version": botocore_version},
        "metadata": dict(model["metadata"]),
        "operations": kept,
        "shapes": shapes,
    }


def _closure(shapes: Json, operations: Json) -> set[str]:
    """Names of all shapes that the operations reach."""
    found: set[str] = set()
    waiting = list(_references(operations))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_references(shapes[name]))
    return found


def _references(value: Any) -> Iterator[str]:
    """Every shape name that a part of the model refers to."""
    if isinstance(value, Mapping):
        if isinstance(value.get("shape"), str):
            yield value["shape"]
        for child in value.values():
            yield from _references(child)
    elif isinstance(value, list):
        for child in value:
            yield from _references(child)


def _undocumented(value: Any) -> Any:
    """The same without documentation; a member that happens to have that name is an object, and stays."""
    if isinstance(value, Mapping):
        return {
            key: _undocumented(child)
            for key, child in value.items()
            if not (key == "documentation" and isinstance(child, str))
        }
    return [_undocumented(child) for child in value] if isinstance(value, list) else value


def render(model: Json) -> str:
    """The file's text: small, yet one operation and one shape a line so that a change of botocore reads as a diff."""
    parts = [f"{json.dumps(key)}:{_section(value)}" for key, value in model.items()]
    return "{" + ",\n".join(parts) + "}\n"


def _section(value: Any) -> str:
    if not isinstance(value, Mapping):
        return _compact(value)
    lines = [f"{json.dumps(key)}:{_compact(child)}" for key, child in value.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def main(arguments: list[str]) -> int:
    """Write or check the file; 1 where a check finds it different."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the file differs")
    options = parser.parse_args(arguments)
    text = render(trim(installed_model(), OPERATIONS, botocore.__version__))
    if options.check:
        same = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        print("up to date" if same else f"differs from botocore {botocore.__version__}")
        return 0 if same else 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    print(f"{TARGET.name}: {len(text.encode())} bytes from botocore {botocore.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
