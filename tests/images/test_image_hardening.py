"""The hardened profile of images/template.yaml, beside a hardened queue."""

from __future__ import annotations

from scripts.render_template import beside, document_of, hardened

from hardening_checks import check_hardened, check_lean
from rendered import core_stack


def test_nothing_of_the_profile_is_there_by_default():
    check_lean(beside(core_stack(), document_of("images/template.yaml")))


def test_every_part_of_the_profile_reaches_everything_that_it_is_for():
    core, stack = hardened().values()
    check_hardened(stack, core.attribute("Key"), {"IntakeFunction": "10", "RegionFunction": "100"})
