"""The use cases: submit, explain, change, observe, run a pass.

    door.py      what is checked before anything is stored
    submit.py    a request becomes a waiting job
    explain.py   position, reason, estimated start: readers of the planner's plan
    why.py       who is in a waiting job's way, and what would help
    consequences.py  what a submission would do to others
    change.py    cancel, stop, hold, release, priority, policy
    pools.py     set, change, drain and remove pools
    pool_use.py  who holds pools, who waits for them, whom the end of one concerns
    observe.py   what SageMaker says becomes a guarded transition
    hands.py     what acting needs, and how every act is committed
    containing.py  a fault of ours costs one job its turn, not everybody the pass
    launch.py    training jobs are created, stopped and asked after
    requests.py  the request of an attempt, and of its members
    resizing/    the size of a running job changes
    under_way.py what a job waits for while it does
    tending.py   what was committed is carried out, and again after a crash
    foreign.py   training jobs that did not come from the queue
    carrying.py  a plan is committed and carried out, decision by decision
    run_pass.py  read, plan, act: one run of the manager

They know the domain, the planner and the ports; never an AWS client. Each is imported from its own module, and nothing
here: a Lambda that never makes a plan must not load the planner whenever it starts.
"""
