"""Hypothesis strategies: any policy that makes sense in a queue of two pools."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from builders import G5, P5
from trainmaster.domain.policy.settings import (
    Budget,
    Choose,
    Expansion,
    FailureClass,
    Gittins,
    Lending,
    Limits,
    Order,
    Placement,
    Policy,
    Preemption,
    Resizes,
    Retry,
    Share,
    WhenSpent,
)

CAP = 12
"""Of each pool: what three shares may own together."""
spans = st.timedeltas(timedelta(0), timedelta(hours=4))
periods = st.timedeltas(timedelta(microseconds=1), timedelta(days=7))
counts = st.integers(0, 1_000)
amounts = st.floats(0, 1e9, allow_nan=False)
units = st.dictionaries(st.sampled_from([P5, G5]), counts, max_size=2)
nominals = st.dictionaries(st.sampled_from([P5, G5]), st.integers(0, CAP // 3), max_size=2)
budgets = st.builds(
    Budget,
    gpu_hours=amounts,
    dollars=st.none() | amounts,
    period=periods,
    when_spent=st.sampled_from(WhenSpent),
)
roles = st.lists(st.sampled_from(["arn:aws:sts::111122223333:assumed-role/a-*", "arn:aws:iam::*:user/ada"]), max_size=2)
prefers = st.lists(st.sampled_from([P5, G5]), max_size=2, unique=True)


@st.composite
def shares(draw: st.DrawFn, name: str) -> Share:
    """A share that lends no more than it has, and borrows only where it may."""
    nominal, lending = draw(nominals), draw(st.sampled_from(Lending))
    lends = {pool: draw(st.integers(0, own)) for pool, own in nominal.items() if draw(st.booleans())}
    return Share(
        name=name,
        nominal=nominal,
        lending=lending,
        lends={} if lending is Lending.RESERVE else lends,
        borrows=draw(units) if lending is Lending.LEND_AND_BORROW else {},
        weight=draw(amounts),
        max=draw(units),
        max_per_user=draw(units),
        budget=draw(st.none() | budgets),
        max_priority=draw(st.none() | st.integers(-1_000_000, 1_000_000)),
        allow_non_preemptible=draw(st.booleans()),
        max_job_instances=draw(st.none() | st.integers(0, CAP)),
        max_job_dollars_per_hour=draw(st.none() | amounts),
        admins=tuple(draw(roles)),
        resizers=tuple(draw(roles)),
        submitters=tuple(draw(roles)),
        prefers=tuple(draw(prefers)),
    )


retries = st.builds(
    Retry,
    max_retries=st.none() | counts,
    first_delay=st.timedeltas(timedelta(microseconds=1), timedelta(hours=1)),
    max_delay=st.timedeltas(timedelta(hours=1), timedelta(days=1)),
)


resizes = st.builds(Resizes, enabled=st.booleans(), shrink_equals=st.booleans(), payback=amounts)


gittins = st.builds(
    Gittins,
    average_weight=amounts,
    restart_budget=st.floats(0, 1),
    min_attempt=spans,
    switch_ratio=st.floats(1, 100),
    guaranteed_lane=st.floats(0, 1),
)


@st.composite
def expansions(draw: st.DrawFn) -> Expansion:
    """Any guard rails that make sense."""
    most = draw(st.integers(0, 64))
    return Expansion(
        enabled=draw(st.booleans()),
        types=tuple(draw(st.lists(st.sampled_from(["ml.*", "*", "ml.g5.*", P5]), max_size=2))),
        max_per_type=draw(st.integers(0, most)),
        max_instances=most,
        dollars_per_hour=draw(st.none() | amounts),
        choose=draw(st.sampled_from(Choose)),
        utilization=draw(st.floats(0.01, 1)),
        retire_after=draw(periods),
    )


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any policy, with something to say of every class of failure."""
    names = draw(st.lists(st.sampled_from(["default", "vision", "a.b-c_d", "7"]), max_size=3, unique=True))
    limits = Limits(draw(spans), draw(spans), draw(counts))
    return Policy(
        order=draw(st.sampled_from(Order)),
        gittins=draw(gittins),
        reservations=draw(st.integers(0, 100)),
        patience=draw(periods),
        preemption=Preemption(
            min(draw(spans), limits.max_min_runtime),
            min(draw(spans), limits.max_cooldown),
            draw(spans),
            draw(st.none() | counts),
        ),
        limits=limits,
        shares={name: draw(shares(name)) for name in names},
        usage_half_life=draw(periods),
        retries={failure: draw(retries) for failure in FailureClass},
        reservation_timeout=draw(periods),
        placement=draw(st.sampled_from(Placement)),
        cpu_weight=draw(st.floats(0, 1)),
        expansion=draw(expansions()),
        resizes=draw(resizes),
        max_actions=draw(st.integers(1, 500)),
    )
