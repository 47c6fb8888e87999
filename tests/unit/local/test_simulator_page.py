"""docs/reference/simulator.md names what the simulator has."""

from __future__ import annotations

import dataclasses
import inspect
import re

import pytest

from doc_pages import DOCS, section, table
from trainmaster.local.simulator import __main__ as program
from trainmaster.local.simulator.faults import Fault
from trainmaster.local.simulator.hostility.hostility import Hostility
from trainmaster.local.simulator.service.engine import Account
from trainmaster.local.simulator.service.profiles import FIELDS, PREFIX
from trainmaster.local.simulator.simulator import SageMakerSimulator

PAGE = DOCS / "reference" / "simulator.md"
TEXT = PAGE.read_text()


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"simulator\.((?:\w+\.)*\w+)(?=[(`\s])", section(PAGE, "In a test"))))
)
def test_members_of_the_simulator_exist(path):
    value = SageMakerSimulator()
    for name in path.split("."):
        assert hasattr(value, name), f"{name} of simulator.{path}"
        value = getattr(value, name)


def test_arguments_exist():
    arguments = inspect.signature(SageMakerSimulator).parameters
    calls = re.findall(r"SageMakerSimulator\((\w+)=", TEXT)
    assert len(calls) >= 4
    assert set(calls) <= arguments.keys()
    assert (
        set(re.findall(r"Account\((\w+)=", TEXT))
        == {"not_found_code"}
        < {field.name for field in dataclasses.fields(Account)}
    )
    assert "`executed=True`" in TEXT
    assert "executed" in {field.name for field in dataclasses.fields(Fault)}


def test_every_variable_has_its_line():
    rows = table(section(PAGE, "The course of a job"), "variable")
    assert [row[0].strip("`") for row in rows] == [PREFIX + name.upper() for name in FIELDS]


def test_every_hostile_field_has_its_line():
    named = [
        name for row in table(section(PAGE, "A hostile SageMaker"), "field") for name in re.findall(r"\w+", row[0])
    ]
    assert named == [field.name for field in dataclasses.fields(Hostility)]


def test_every_option_of_the_server_has_its_line():
    named = {name for row in table(section(PAGE, "As a server"), "option") for name in re.findall(r"--[\w-]+", row[0])}
    options = {option for action in program._parser()._actions for option in action.option_strings}
    assert named == {option for option in options if option.startswith("--")} - {"--help"}
