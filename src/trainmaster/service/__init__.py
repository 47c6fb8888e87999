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
    launch.py    training jobs are created, stopped and asked after
    requests.py  the request of an attempt, and of its members
    resizing/    the size of a running job changes
    under_way.py what a job waits for while it does
    tending.py   what was committed is carried out, and again after a crash
    foreign.py   training jobs that did not come from the queue
    carrying.py  a plan is committed and carried out, decision by decision
    run_pass.py  read, plan, act: one run of the manager

They know the domain, the planner and the ports; never an AWS client.
"""

from trainmaster.service.carrying import PassReport
from trainmaster.service.change import cancel, change, set_policy
from trainmaster.service.door import Admission, Door
from trainmaster.service.explain import Explanation, dry_run, explain, explain_in
from trainmaster.service.observe import observe
from trainmaster.service.pool_use import pool_usage
from trainmaster.service.pools import change_pool, put_pool, remove_pool, set_pools
from trainmaster.service.run_pass import run_pass
from trainmaster.service.submit import Submission, submit

__all__ = [
    "Admission",
    "Door",
    "Explanation",
    "PassReport",
    "Submission",
    "cancel",
    "change",
    "change_pool",
    "dry_run",
    "explain",
    "explain_in",
    "observe",
    "pool_usage",
    "put_pool",
    "remove_pool",
    "run_pass",
    "set_policy",
    "set_pools",
    "submit",
]
