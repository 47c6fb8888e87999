from __future__ import annotations

import pytest
from runs_contract import RunsContract


class TestMemoryRuns(RunsContract):
    @pytest.fixture
    def runs(self, memory_engine):
        return memory_engine.runs()
