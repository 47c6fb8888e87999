"""Which alternatives a job starts on: the queue's choice, or SageMaker's."""

from __future__ import annotations

import random

from builders import G5, P5, a_job, a_snapshot
from trainmaster.domain.capacity import Demand, Pool
from trainmaster.planner.place import Placement, Placer


def placed(job, fitting, *pools):
    return Placer(a_snapshot(pools=pools), random.Random(1)).place(job, fitting, lambda _: 99)


def test_one_alternative_leaves_nothing_to_choose():
    assert placed(a_job(), [{P5: 1}]) == Placement({P5: 1})


def test_where_the_queue_chooses_the_first_that_fits_is_taken_alone():
    job = a_job(demand=Demand(({"plan": 2}, {P5: 2}, {"spot": 2}), ours=True))
    assert placed(job, [{P5: 2}, {"spot": 2}]) == Placement({P5: 2})


def test_where_sagemaker_chooses_it_gets_all_that_fit():
    job = a_job(demand=Demand(({P5: 1}, {G5: 4})))
    assert placed(job, [{P5: 1}, {G5: 4}]) == Placement({P5: 1, G5: 4}, (P5, G5))


def test_choices_are_types_in_the_order_of_the_units():
    job = a_job(demand=Demand(({"plan": 1}, {G5: 4})))
    placement = placed(job, [{"plan": 1}, {G5: 4}], Pool("plan", 4, type_=P5), Pool(G5, 4))
    assert (list(placement.units), placement.choices) == (["plan", G5], (P5, G5))
