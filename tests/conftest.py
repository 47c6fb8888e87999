"""Fixtures of all tests. Its place here puts `tests/` on the import path: `from builders import a_job`."""

import logging
import signal

import pytest

from policy_evaluator import PolicyEvaluator

try:
    from hypothesis import settings
except ModuleNotFoundError:  # the environments of torch and JAX have no Hypothesis
    settings = None
else:
    # A slow machine is no failure. The parent is Hypothesis's own choice, so that CI draws the same examples each time.
    settings.register_profile("unhurried", settings(), deadline=None)
    settings.register_profile("brief", settings.get_profile("unhurried"), max_examples=20)
    settings.load_profile("unhurried")


def pytest_configure(config):
    """Draw fewer examples if slow tests are left out; take SIGINT where a shell's background job ignores it.

    The programs that tests interrupt inherit that.
    """
    if settings is not None and config.option.markexpr == "not slow":
        settings.load_profile("brief")
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
