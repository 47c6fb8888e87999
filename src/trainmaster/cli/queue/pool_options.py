"""Arguments and options that describe pools."""

from __future__ import annotations

from typing import Annotated

import typer

from trainmaster.domain.capacity.units import Kind
from trainmaster.domain.compat import StrEnum

PoolNames = Annotated[list[str], typer.Argument(metavar="POOL", help="Names of the pools.")]
Caps = Annotated[
    list[str],
    typer.Argument(metavar="POOL=CAP", help="Pools by instance type or name, with their number of instances."),
]
Type = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Instance type, for pools with another name.")]


class SettableKind(StrEnum):
    """The kinds of pools that users set; endpoint pools follow from endpoints."""

    ON_DEMAND = Kind.ON_DEMAND.value
    SPOT = Kind.SPOT.value
    TRAINING_PLAN = Kind.TRAINING_PLAN.value


KindOption = Annotated[
    SettableKind | None,
    typer.Option("--kind", metavar="KIND", help=f"How SageMaker provides the instances: {', '.join(SettableKind)}."),
]
Plan = Annotated[
    str | None, typer.Option("--plan", metavar="ARN", help="Training plan; makes the pool one of that kind.")
]
Price = Annotated[
    float | None, typer.Option("--price", metavar="DOLLARS", min=0, help="Price of one instance per hour.")
]
VCpus = Annotated[
    int | None,
    typer.Option("--vcpus", metavar="N", min=0, help="vCPUs of an instance; 0 uses the known value of the type."),
]
Memory = Annotated[
    float | None,
    typer.Option(
        "--memory-gib", metavar="GIB", min=0, help="Memory of an instance; 0 uses the known value of the type."
    ),
]
Accelerators = Annotated[
    int | None,
    typer.Option(
        "--accelerators", metavar="N", min=0, help="Accelerators of an instance; 0 uses the known value of the type."
    ),
]
Manufacturer = Annotated[
    str | None,
    typer.Option(
        "--accelerator", metavar="MANUFACTURER", help="Manufacturer of the accelerators, such as nvidia or aws."
    ),
]
AcceleratorMemory = Annotated[
    float | None,
    typer.Option(
        "--accelerator-memory-gib",
        metavar="GIB",
        min=0,
        help="Memory of all accelerators of an instance; 0 uses the known value of the type.",
    ),
]
CountExternal = Annotated[
    bool | None,
    typer.Option(
        "--count-external/--no-count-external",
        help="Whether training jobs that did not come from the queue count against the cap; unchanged by default.",
        show_default=False,
    ),
]
