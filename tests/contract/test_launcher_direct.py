"""The SageMaker launcher over the simulator's direct client, which a replay uses: all groups of the contract."""

from __future__ import annotations

import pytest
from launcher_contract import (
    QUEUE,
    Chooses,
    Creates,
    Fails,
    Interrupts,
    KeepsNamesUnique,
    KeepsWarm,
    Lives,
    Plans,
    Reports,
    RunsOut,
    Stops,
)
from test_launcher_simulator import SimulatorBench

from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher


@pytest.fixture(params=["ValidationException", "ResourceNotFound"])
def bench(request):
    bench = SimulatorBench(request.param)
    bench.launcher = SageMakerLauncher(bench.simulator.direct(), QUEUE)
    return bench


class TestDirect(
    Creates, KeepsNamesUnique, Lives, Stops, KeepsWarm, Chooses, RunsOut, Plans, Interrupts, Fails, Reports
):
    """The SageMaker adapter, with nothing written down between it and the simulator."""
