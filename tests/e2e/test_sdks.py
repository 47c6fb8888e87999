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


@pytest.mark.parametrize("subject", ["deployed", "containers"])
@pytest.mark.parametrize("sdk", ["sdk2", "sdk3"])
def test_the_sdk_works_with_the_deployed_queue(sdk, subject, deployed, instance_type, checkout):
    handed = {**deployed.address.environment(), "INSTANCE_TYPE": instance_type, "SPEED": SPEED}
    environment = {f"TRAINMASTER_E2E_{name}": value for name, value in handed.items()}
    folder = checkout.root / "tests" / "e2e" / sdk
    ran = subprocess.run(
        [checkout.root / f".venv-{sdk}" / "bin" / "python", "-m", "pytest", folder / f"test_{sdk}_{subject}.py"],
        env=clean_environment(os.environ) | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ran.returncode == PASSED, ran.stdout
    assert "skipped" not in ran.stdout, ran.stdout
