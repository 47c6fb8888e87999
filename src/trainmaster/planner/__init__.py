"""The verbs: pure functions from a snapshot to a plan.

    schedule.py   the one public function: schedule(snapshot, now, rng) -> Plan; it alone imports the stages
    order.py      who is considered first
    fit.py        the ledger: what is free, on the way and spoken for while a plan is made
    place.py      which alternative of a demand a job starts on
    preempt.py    which jobs step aside
    resize.py     what resizing an elastic job costs and brings, and when
    ways.py       how a blocked job gets units: warm pools end, elastic jobs shrink, others step aside
    growing.py    what is idle in the end goes to elastic jobs
    forecast.py   a reader: runs schedule forward to estimate a start
    course.py     what becomes of the queue on the way: plans are carried out, jobs end
    rough.py      the same in long queues, by a rule of thumb

No clock, no environment, no I/O, no globals that change.
"""
