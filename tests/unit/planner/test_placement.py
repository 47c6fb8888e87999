"""The placement policies: the article's worked numbers, and each policy at its edges."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import pytest

from trainmaster.domain.plan import Cursors
from trainmaster.domain.policy.settings import Placement
from trainmaster.planner.placement.policies import (
    CandidatePool,
    chances,
    choose,
    choose_queue,
    initial_weight,
    smooth_round,
)

DRAWING = (Placement.RANDOM, Placement.PICK_KX, Placement.RESOURCE_PICK_KX)
TOTALS, LOADS = (5, 6, 7, 8), (3, 2, 1, 5)
"""The article's four nodes (section 3.2, below equation 5)."""


def a_contender(name="a", total=4.0, free=4.0, **fields):
    return CandidatePool(name=name, total=total, free=free, **fields)


def article_nodes():
    """Their chances are exact."""
    rows = enumerate(zip(TOTALS, LOADS, strict=True))
    return [a_contender(f"n{i}", Fraction(total), Fraction(total - load)) for i, (total, load) in rows]


def chosen(policy, contenders, cursors=None, seed=1):
    return choose(policy, contenders, cursors or Cursors(), random.Random(seed))


def counts(policy, contenders, draws=4_000):
    rng = random.Random(7)
    return Counter(choose(policy, contenders, Cursors(), rng).name for _ in range(draws))


def turns(policy, contenders, rounds, cursors=None):
    cursors, names = cursors or Cursors(), []
    for _ in range(rounds):
        turn = chosen(policy, contenders, cursors)
        cursors = turn.cursors
        names.append(turn.name)
    return names, cursors


# -- the article's numbers ---------------------------------------------------------------------------------------------


def test_pick_kx_has_the_articles_probabilities():
    found = chances(Placement.PICK_KX, article_nodes())
    assert found == [Fraction(8, 33), Fraction(9, 33), Fraction(10, 33), Fraction(6, 33)]


def test_resource_pick_kx_has_the_articles_probabilities():
    found = chances(Placement.RESOURCE_PICK_KX, article_nodes())
    assert found == [Fraction(2, 15), Fraction(4, 15), Fraction(6, 15), Fraction(3, 15)]


def test_chance_alone_gives_all_pools_the_same():
    assert chances(Placement.RANDOM, article_nodes()) == [1 / 4] * 4


@pytest.mark.parametrize("policy", sorted(set(Placement) - set(DRAWING)))
def test_a_policy_that_does_not_draw_has_no_chances(policy):
    with pytest.raises(KeyError):
        chances(policy, article_nodes())


def test_smooth_weighted_round_robin_has_the_articles_weights():
    last = {name: Fraction(text) for name, text in zip("1234", ("3.5", "2.4", "6.2", "5.8"), strict=True)}
    initial = {name: Fraction(text) for name, text in zip("1234", ("4.7", "5.0", "3.9", "6.2"), strict=True)}
    name, weights = smooth_round(last, initial)
    assert name == "4"
    assert [weights[each] for each in "1234"] == [Fraction(text) for text in ("8.2", "7.4", "10.1", "-7.8")]


def test_the_initial_weight_is_nine_parts_of_processors_and_one_of_memory():
    assert initial_weight(Fraction(4), Fraction(2), Fraction(10), Fraction(1, 4)) == Fraction("3.25")
    assert initial_weight(1.0, 1.0, 1.0, 0.3) == pytest.approx(1.0)


def test_weights_of_five_one_and_one_go_round_smoothly():
    contenders = [a_contender(name, weight=weight) for name, weight in (("a", 5.0), ("b", 1.0), ("c", 1.0))]
    names, cursors = turns(Placement.SMOOTH_WEIGHTED_ROUND_ROBIN, contenders, 7)
    assert "".join(names) == "aabacaa"
    assert set(cursors.weights.values()) == {0}


# -- what a policy draws follows its probabilities ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "parts"),
    [
        (Placement.RANDOM, (1, 1, 1, 1)),
        (Placement.PICK_KX, (8, 9, 10, 6)),
        (Placement.RESOURCE_PICK_KX, (2, 4, 6, 3)),
    ],
)
def test_draws_come_as_often_as_their_probability_says(policy, parts):
    found = counts(policy, article_nodes())
    for index, part in enumerate(parts):
        assert found[f"n{index}"] / 4_000 == pytest.approx(part / sum(parts), abs=0.03)


@pytest.mark.parametrize("policy", DRAWING)
def test_a_policy_that_draws_takes_one_number_and_no_cursors(policy):
    rng, other = random.Random(3), random.Random(3)
    assert choose(policy, article_nodes(), Cursors("n1"), rng).cursors is None
    other.random()
    assert rng.random() == other.random()


@pytest.mark.parametrize("policy", Placement)
def test_the_order_in_which_pools_come_changes_nothing(policy):
    contenders = article_nodes()
    for seed in range(20):
        assert chosen(policy, contenders[::-1], seed=seed) == chosen(policy, contenders, seed=seed)


# -- edges -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", Placement)
@pytest.mark.parametrize(
    "only", [a_contender(), a_contender(free=0.0), a_contender(total=0.0, free=0.0), a_contender(weight=2.0)], ids=str
)
def test_one_pool_is_chosen_whatever_it_has(policy, only):
    assert chosen(policy, [only]).name == "a"
    assert choose_queue(policy, [only], 0.999) == "a"


def test_where_nothing_is_loaded_pick_kx_takes_any():
    assert set(counts(Placement.PICK_KX, [a_contender("a"), a_contender("b", 400, 400)], 50)) == {"a", "b"}


def test_pick_kx_leaves_out_who_carries_all_load():
    found = counts(Placement.PICK_KX, [a_contender("a", 4, 1), a_contender("b"), a_contender("c")], 200)
    assert set(found) == {"b", "c"}


def test_resource_pick_kx_leaves_out_where_nothing_is_free():
    contenders = [a_contender("a"), a_contender("b", 8, 0), a_contender("c", 8, 0)]
    assert set(counts(Placement.RESOURCE_PICK_KX, contenders, 200)) == {"a"}


def test_where_nothing_is_free_resource_pick_kx_goes_by_the_totals():
    found = counts(Placement.RESOURCE_PICK_KX, [a_contender("a", 1, 0), a_contender("b", 9, 0)], 2_000)
    assert found["b"] / 2_000 == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("policy", Placement)
def test_pools_of_which_nothing_is_known_are_all_alike(policy):
    contenders = [a_contender(name, 0.0, 0.0) for name in "ab"]
    cursors, names, rng = Cursors(), set(), random.Random(1)
    for _ in range(40):
        turn = choose(policy, contenders, cursors, rng)
        cursors = turn.cursors or cursors
        names.add(turn.name)
    assert names == ({"a"} if policy is Placement.BEST_FIT else {"a", "b"})


def test_a_pool_without_weight_has_no_turn_beside_others():
    names, _ = turns(Placement.SMOOTH_WEIGHTED_ROUND_ROBIN, [a_contender("a"), a_contender("b", weight=1.0)], 5)
    assert set(names) == {"b"}


# -- going round -------------------------------------------------------------------------------------------------------


def test_round_robin_goes_by_name_and_starts_over():
    names, cursors = turns(Placement.ROUND_ROBIN, article_nodes(), 6)
    assert names == ["n0", "n1", "n2", "n3", "n0", "n1"]
    assert cursors == Cursors("n1")


def test_round_robin_goes_on_where_it_was_when_pools_come_and_go():
    contenders = [a_contender(name) for name in ("a", "c", "d")]
    assert chosen(Placement.ROUND_ROBIN, contenders, Cursors("b")).name == "c"
    assert chosen(Placement.ROUND_ROBIN, contenders, Cursors("z")).name == "a"


def test_each_cursor_leaves_the_other_alone():
    cursors = Cursors("a", {"z": 3.0})
    contenders = [a_contender("a", weight=1.0), a_contender("b", weight=1.0)]
    assert chosen(Placement.ROUND_ROBIN, contenders, cursors).cursors == Cursors("b", {"z": 3.0})
    found = chosen(Placement.SMOOTH_WEIGHTED_ROUND_ROBIN, contenders, cursors).cursors
    assert found == Cursors("a", {"z": 3.0, "a": -1.0, "b": 1.0})


# -- where a job waits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "parts"),
    [
        (Placement.RANDOM, (1, 1, 1)),
        (Placement.ROUND_ROBIN, (1, 1, 1)),
        (Placement.PICK_KX, (1, 1, 1)),
        (Placement.RESOURCE_PICK_KX, (1, 3, 6)),
        (Placement.SMOOTH_WEIGHTED_ROUND_ROBIN, (2, 3, 5)),
    ],
)
def test_queues_are_chosen_by_the_totals_as_often_as_the_policy_gives_turns(policy, parts):
    contenders = [
        a_contender("a", 10, 0, weight=0.2),
        a_contender("b", 30, 3, weight=0.3),
        a_contender("c", 60, 1, weight=0.5),
    ]
    found = Counter(choose_queue(policy, contenders, point / 1_000) for point in range(1_000))
    assert [found[name] for name in "abc"] == pytest.approx([1_000 * part / sum(parts) for part in parts], abs=1)


def test_best_fit_queues_where_it_would_start():
    contenders = [
        a_contender("a", surplus=(1.0,), left=0),
        a_contender("b", surplus=(0.0,), left=4),
        a_contender("c", surplus=(0.0,)),
    ]
    assert {choose_queue(Placement.BEST_FIT, contenders, point / 10) for point in range(10)} == {"c"}
