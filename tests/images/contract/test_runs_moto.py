from __future__ import annotations

import pytest
from runs_contract import RunsContract


class TestMotoRuns(RunsContract):
    many = 103
    """For each transaction moto copies all that it holds."""

    @pytest.fixture
    def runs(self, moto_engine):
        return moto_engine.runs()
