"""The bundle that the benchmark of starts builds on this machine is one of a function."""

import pytest
from benchmarks.startup.bundle import built


@pytest.mark.slow
def test_the_measured_bundle_has_the_handler_compiled_and_its_packages():
    folder = built("manager")
    assert list(folder.glob("trainmaster/handlers/__pycache__/manager.*.pyc"))
    assert (folder / "aws_lambda_powertools").is_dir()
    assert not (folder / "pydantic").exists()
