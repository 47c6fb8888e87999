"""The hardened profile of images/template.yaml, beside a hardened queue."""

from __future__ import annotations

from hardening_checks import HARDENED, check_hardened, check_lean
from rendered import beside, core_stack, document_of

DOCUMENT = document_of("images/template.yaml")


def test_nothing_of_the_profile_is_there_by_default():
    check_lean(beside(core_stack(), DOCUMENT))


def test_every_part_of_the_profile_reaches_everything_that_it_is_for():
    core = core_stack(**HARDENED)
    stack = beside(core, DOCUMENT, **HARDENED, IntakeReservedConcurrency="10", RegionReservedConcurrency="100")
    check_hardened(stack, core.attribute("Key"), {"IntakeFunction": "10", "RegionFunction": "100"})
