"""Programs and packages that launchers of distributed jobs need from their image, and that this machine may lack."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass

from trainmaster.local.simulator.containers.layout import Container

_SCRIPTS = ("sm_drivers/sm_train.sh", "sagemaker_remote_function_bootstrap/job_driver.sh")
"""Entry points that the SDK uploads as input channels."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """A launcher: how an entry point calls it, and what it needs."""

    name: str
    called: re.Pattern[str]
    programs: tuple[str, ...]
    packages: tuple[str, ...]


LAUNCHERS = (
    Launcher(
        "MPI", re.compile(r"mpi_driver\.py|(?<![\w./-])mpirun\b"), ("mpirun", "/usr/sbin/sshd"), ("mpi4py", "paramiko")
    ),
    Launcher("torchrun", re.compile(r"torchrun_driver\.py|(?<![\w./-])torchrun\b"), ("torchrun",), ("torch",)),
)


def launcher_of(container: Container) -> Launcher | None:
    """Return the launcher that a container's command, or the SDK's script that it runs, calls by name."""
    text = " ".join([*container.argv, *_scripts(container)])
    return next((launcher for launcher in LAUNCHERS if launcher.called.search(text)), None)


def why_not_launched(launcher: Launcher, path: str, packages: Collection[str] | None) -> str | None:
    """Return what a launcher lacks, as a sentence; None if it lacks nothing.

    `path` is the `PATH` of the job. `packages` are those of its environment; None if they are not known.
    """
    programs = [name for name in launcher.programs if shutil.which(name, path=path) is None]
    absent = [f"the package {name}" for name in launcher.packages if packages is not None and name not in packages]
    if not programs and not absent:
        return None
    return (
        f"this machine lacks {', '.join([*programs, *absent])}, which the image has and {launcher.name} needs. Install "
        "the programs, and name an environment with the packages: make stack ARGS='--python PATH'"
    )


def _scripts(container: Container) -> list[str]:
    paths = [container.channel(name) for name in _SCRIPTS]
    return [path.read_text(errors="replace") for path in paths if path.is_file()]
