"""Public examples of AWS and Hugging Face with both SageMaker SDKs, on a local stack that has the examples' pools.

The examples are in sdk2/ and sdk3/; `docs/reference/examples.md` lists them, and a test compares the two.
"""

import os
import subprocess

import pytest

from trainmaster.local.stack import LocalStack
from trainmaster.local.stack.address import clean_environment

POOLS = {
    f"ml.{each}": 4
    for each in (
        "c4.xlarge", "c5.xlarge", "c5.2xlarge", "g5.12xlarge", "m4.xlarge", "m5.xlarge", "m5.2xlarge", "m5.4xlarge",
        "p3.2xlarge", "p3.8xlarge", "p3.16xlarge", "p3dn.24xlarge", "p4d.24xlarge", "p5.48xlarge",
    )
} | {"ml.p4d.24xlarge": 16}  # fmt: skip
"""Instance types of the examples, with the number of each. One example lets SageMaker take two of one type or four of
another, so four of those have to be free whatever else runs."""
PATIENCE_SECONDS = 2400
SPEED = "200"


@pytest.fixture(scope="module")
def environment():
    """The variables with which the SDKs' suites reach the stack."""
    pools = {"Pools": ",".join(f"{name}={count}" for name, count in POOLS.items())}
    with LocalStack(label="examples", limits=POOLS, parameters=pools, simulator=("--speed", SPEED)) as address:
        yield {f"TRAINMASTER_E2E_{name}": value for name, value in address.environment().items()}


@pytest.mark.slow
@pytest.mark.parametrize("sdk", ["sdk2", "sdk3"])
def test_public_examples_run_through_the_queue(sdk, environment, checkout):
    suite = checkout.root / "tests" / "e2e" / sdk / f"test_{sdk}_examples.py"
    ran = subprocess.run(
        [checkout.root / f".venv-{sdk}" / "bin" / "python", "-m", "pytest", suite],
        env=clean_environment(os.environ) | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "skipped" not in ran.stdout, ran.stdout
