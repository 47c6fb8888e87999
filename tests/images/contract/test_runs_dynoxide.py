from __future__ import annotations

import pytest
from runs_contract import RunsContract


class TestDynoxideRuns(RunsContract):
    @pytest.fixture
    def runs(self, dynoxide_engine):
        return dynoxide_engine.runs()
