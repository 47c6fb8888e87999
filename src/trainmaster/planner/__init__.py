"""The verbs: pure functions from a snapshot to a plan.

Put together; these may import stages, no other may but as `tests/test_architecture.py` says:

    schedule.py     the one public function: schedule(snapshot, now, rng) -> Plan
    figures.py      the working figures of a plan in the making: every stage's, and what they say of one job
    deciding.py     what becomes of one waiting job: it starts, others give way to it, or it waits
    ways.py         how a blocked job gets units: warm pools end, elastic jobs shrink, others step aside
    growing.py      what is idle in the end goes to elastic jobs

Stages, each a question of its own; below some their helpers, which nobody else here imports:

    standing.py     what a standing is, by which jobs outrank each other; all may import it
    order.py        who is considered first, and who outranks whom
    attained.py     the same by what jobs have received: least attained service
    loads.py        image jobs of the least loaded endpoint first
    turns.py        which share's turn it is
    alike.py        jobs that are blocked for the same reason as one before them
    fit.py          the ledger: what is free, on the way and spoken for while a plan is made
    limits.py       caps of users, groups and budgets, which hold however idle the pools are
    share.py        what each share may have of the pools
      holdings.py     what the jobs of each share hold, and what is promised to them
    windows.py      whether a job may start on a training plan's units now
    warm.py         who starts on warm pools, and which are ended for a job
    place.py        where a job starts, of the alternatives that it has
      placement.py    the placement policies, for pools that could all hold a job
      lacking.py      which pools have lately turned out to lack instances
    expect.py       when jobs are expected to end
    reserve.py      reservations for blocked jobs, and who may pass them
    shortage.py     what a blocked job is told
    preempt.py      which jobs step aside
      reach.py        whom a newcomer could have step aside, and from which standing on
      shelves.py      the jobs that may, put where they are found fast
      victims.py      the cheapest set of them that frees enough
    resize.py       what resizing an elastic job costs and brings, and from when on
    shrinking.py    which jobs give instances for another, and how many
    expand.py       pools that the manager makes and removes
      wanted.py       what nothing that people set could ever hold
      rails.py        how many instances of a type the manager may have
      spare.py        what its pools could do without
      barred.py       which jobs rules would keep from starting though there were a pool

Readers of plans, which no plan is made with:

    forecast.py     runs schedule forward to estimate a start
    course.py       what becomes of the queue on the way: plans are carried out, jobs end
    rough.py        the same of long queues, by a rule of thumb
      bounds.py       how much groups, users and shares may hold at once in it

No clock, no environment, no I/O, no globals that change.
"""
