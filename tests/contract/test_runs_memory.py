from __future__ import annotations

import pytest
from runs_contract import RunsContract

from trainmaster.local.memory_runs import MemoryRuns


class TestMemoryRuns(RunsContract):
    @pytest.fixture
    def runs(self):
        return MemoryRuns()
