"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

import typer

from trainmaster.domain.jobs.priorities import MAX_PRIORITY

Json = Annotated[
    bool, typer.Option("--json", help="Print the API's response as JSON, as -o json does; -o yaml prints it as YAML.")
]

T = TypeVar("T", str, Sequence[str])


def _job_names(given: T) -> T:
    """Return the names of jobs as given. Raises BadParameter for a path."""
    for name in [given] if isinstance(given, str) else given:
        if "/" in name:
            raise typer.BadParameter(f"{name!r} is not the name of a job")
    return given


Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the job.", callback=_job_names)]
Names = Annotated[list[str], typer.Argument(metavar="NAME", help="Names of the jobs.", callback=_job_names)]
File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A CreateTrainingJob request, a manifest of HyperPod or Kubernetes, or a request for a job of another "
        "kind, in JSON or YAML; - reads standard input.",
    ),
]
Base = Annotated[
    str | None,
    typer.Option(
        "--with",
        metavar="FILE",
        help="Members that a manifest lacks: a part of a CreateTrainingJob request in JSON, for example RoleArn and "
        "OutputDataConfig. It takes precedence over the manifest.",
    ),
]
Priority = Annotated[
    int | None,
    typer.Option(
        "--priority",
        metavar="INTEGER",
        min=-MAX_PRIORITY,
        max=MAX_PRIORITY,
        help="Set the tag `priority`; higher values start first. Default: 0.",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Set the tag `trainmaster:NAME`, for example preemptible=false; may be repeated.",
    ),
]
Resources = Annotated[
    str | None,
    typer.Option(
        "--resources",
        metavar="MEMBERS",
        help="Request instances of any type with these resources: accelerators=8,vcpus=96,memory_gib=768; "
        "sets the tag `trainmaster:resources`.",
    ),
]
Instances = Annotated[
    int | None,
    typer.Option(
        "--instances", metavar="N", min=1, help="Number of such instances; sets the tag `trainmaster:instances`."
    ),
]
