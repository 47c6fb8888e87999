"""Each mutant is caught within some days, so the harness would notice such a mistake."""

import pytest

from simulation.mutants import DAYS, MUTANTS, days_until_caught, mutated


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_sources_still_have_what_a_mutant_replaces(mutant, tmp_path):
    copy = mutated(mutant, tmp_path)
    assert mutant.after in (copy / "trainmaster" / mutant.module).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_caught(mutant):
    assert days_until_caught(mutant) is not None, f"not within {DAYS} days"
