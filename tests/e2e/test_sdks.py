"""Both SageMaker SDKs, each in its own environment, against the deployed stack.

The tests themselves are in sdk2/ and sdk3/: here they are handed the stack's addresses and an instance type.
"""

import os
import subprocess

import pytest

from trainmaster.local.stack.address import clean_environment

PATIENCE_SECONDS = 540
SPEED = "40"
PASSED = 0


@pytest.mark.parametrize("subject", ["sdk2_deployed", "sdk2_containers", "sdk3_deployed", "sdk3_containers"])
def test_the_sdk_works_with_the_deployed_queue(subject, deployed, instance_type, checkout, pytestconfig):
    handed = {**deployed.address.environment(), "INSTANCE_TYPE": instance_type, "SPEED": SPEED}
    environment = {f"TRAINMASTER_E2E_{name}": value for name, value in handed.items()}
    sdk = subject.partition("_")[0]
    python = checkout.root / f".venv-{sdk}" / "bin" / "python"
    selection = ("-m", pytestconfig.getoption("markexpr"))
    ran = subprocess.run(
        [python, "-m", "pytest", checkout.root / "tests" / "e2e" / sdk / f"test_{subject}.py", *selection],
        env=clean_environment(os.environ) | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ran.returncode == PASSED, ran.stdout
    assert "skipped" not in ran.stdout, ran.stdout
