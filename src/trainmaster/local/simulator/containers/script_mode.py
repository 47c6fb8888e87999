"""Script mode of AWS's framework images: hyperparameters name a program and the archive that it is in.

SDK 2's framework estimators use it. The images run the program with the other hyperparameters as its arguments.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from trainmaster.local.simulator.containers.layout import variable_name
from trainmaster.local.simulator.containers.transfer import ObjectStore, TransferFailed, split_uri
from trainmaster.local.simulator.service.job import TrainingJob

_PREFIX = "sagemaker_"
_PROGRAM, _ARCHIVE = "sagemaker_program", "sagemaker_submit_directory"
_TORCHRUN = "sagemaker_torch_distributed_enabled"
_RUN_PYTHON = """
if [ -f requirements.txt ]; then python -m pip install -r requirements.txt || exit; fi
exec "$@"
"""
MASTER_PORT = 7777
"""The port of the images for torchrun."""


def decoded(job: TrainingJob) -> dict[str, Any]:
    """Return the hyperparameters, which the SDK encodes as JSON, decoded where possible."""
    return {name: _decode(value) for name, value in job.request.get("HyperParameters", {}).items()}


def uses_script_mode(job: TrainingJob) -> bool:
    """Return whether the job has no command, but a program for a framework image."""
    parameters = decoded(job)
    return not job.argv and isinstance(parameters.get(_PROGRAM), str) and str(parameters.get(_ARCHIVE)).startswith(
        "s3://"
    )  # fmt: skip


def unpack(job: TrainingJob, store: ObjectStore, folder: Path) -> None:
    """Extract the archive with the program into a folder. Raises TransferFailed."""
    uri = decoded(job)[_ARCHIVE]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "source.tar.gz")
        store.download(*split_uri(uri), path)
        try:
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
        except (tarfile.TarError, OSError) as error:
            raise TransferFailed(f"{uri}: {error}") from error


def command(job: TrainingJob, hosts: list[str], host: str) -> list[str]:
    """Return the command of an instance, for the folder that `unpack` has filled."""
    parameters = decoded(job)
    program = parameters[_PROGRAM]
    launcher = ["/bin/sh"] if program.endswith(".sh") else ["python"]
    if parameters.get(_TORCHRUN):
        launcher = ["torchrun", "--nnodes", str(len(hosts)), "--nproc_per_node", "1"]
        if len(hosts) > 1:
            launcher += ["--master_addr", hosts[0], "--master_port", str(MASTER_PORT),
                         "--node_rank", str(hosts.index(host))]  # fmt: skip
    return ["/bin/sh", "-c", _RUN_PYTHON, "sh", *launcher, program, *user_arguments(parameters)]


def variables(job: TrainingJob, base: Path) -> dict[str, str]:
    """Return the variables that the images set for a program, beside those of every container."""
    parameters = decoded(job)
    own = {name: value for name, value in parameters.items() if not name.startswith(_PREFIX)}
    return {
        "SM_HPS": json.dumps(own),
        **{f"SM_HP_{variable_name(name)}": _as_argument(value) for name, value in own.items()},
        "SM_USER_ARGS": json.dumps(user_arguments(parameters)),
        "SM_USER_ENTRY_POINT": parameters[_PROGRAM],
        "SM_MODULE_NAME": Path(parameters[_PROGRAM]).stem,
        "SM_MODULE_DIR": parameters[_ARCHIVE],
        "SM_OUTPUT_INTERMEDIATE_DIR": str(base / "output" / "intermediate"),
        "SM_LOG_LEVEL": str(parameters.get("sagemaker_container_log_level", 20)),
    }


def user_arguments(parameters: dict[str, Any]) -> list[str]:
    """Return the hyperparameters of the program as its arguments, in the images' order and form."""
    own = {name: value for name, value in parameters.items() if not name.startswith(_PREFIX)}
    pairs = [(f"-{name}" if len(name) == 1 else f"--{name}", value) for name, value in sorted(own.items())]
    return [part for name, value in pairs for part in (name, _as_argument(value))]


def _as_argument(value: Any) -> str:
    return ",".join(f"{key}={each}" for key, each in sorted(value.items())) if isinstance(value, dict) else str(value)


def _decode(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
