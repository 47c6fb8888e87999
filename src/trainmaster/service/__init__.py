"""The use cases: submit, explain, change, observe, run a pass.

    door.py      what is checked before anything is stored
    submit.py    a request becomes a waiting job
    explain.py   position, reason, estimated start: readers of the planner's plan
    why.py       who is in a waiting job's way, and what would help
    consequences.py  what a submission would do to others
    change.py    cancel, stop, hold, release, priority, pools, policy
    observe.py   what SageMaker says becomes a guarded transition
    launch.py    a start or a stop that was committed is carried out, and again after a crash
    foreign.py   training jobs that did not come from the queue
    run_pass.py  read, plan, act: one run of the manager

They know the domain, the planner and the ports; never an AWS client.
"""

from trainmaster.service.change import cancel, change, set_policy, set_pools
from trainmaster.service.door import Admission, Door
from trainmaster.service.explain import Explanation, dry_run, explain, explain_in, pool_usage
from trainmaster.service.observe import observe
from trainmaster.service.run_pass import PassReport, run_pass
from trainmaster.service.submit import Submission, submit

__all__ = [
    "Admission",
    "Door",
    "Explanation",
    "PassReport",
    "Submission",
    "cancel",
    "change",
    "dry_run",
    "explain",
    "explain_in",
    "observe",
    "pool_usage",
    "run_pass",
    "set_policy",
    "set_pools",
    "submit",
]
