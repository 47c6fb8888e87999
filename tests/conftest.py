"""Fixtures of all tests. Its place here puts `tests/` on the import path: `from builders import a_job`."""

import logging
import signal
from contextlib import suppress

import pytest

from policy_evaluator import PolicyEvaluator

with suppress(ModuleNotFoundError):  # the environments of torch and JAX have no Hypothesis
    from hypothesis import settings

    # A slow machine is no failure. The parent is Hypothesis's own choice, so that CI draws the same examples each time.
    settings.register_profile("unhurried", settings(), deadline=None)
    settings.load_profile("unhurried")


def pytest_configure():
    """Take SIGINT where a shell's background job ignores it: the programs that tests interrupt inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def quiet():
    """Silence the thousands of warnings about injected faults."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="session")
def evaluator():
    """Evaluates IAM policies."""
    with PolicyEvaluator() as running:
        yield running
