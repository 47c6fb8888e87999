"""Use cases. Read `run_pass` first: one run of the manager, from the snapshot to the applied plan.

    run_pass        read a snapshot, reconcile, schedule, apply the plan
    reconcile       resume unfinished actions, poll SageMaker
    apply_plan      commit each decision, then carry it out
    launch          create and stop training jobs
    attempt_request the CreateTrainingJob request of an attempt
    observe         apply SageMaker's reports
    dependencies    jobs that wait for a time or for other jobs
    randomness      the random numbers of a pass
    context, faults dependencies and error isolation of the manager's actions
    submit, change  the API's commands: submit, plan, cancel, hold, priority, settings
    wake            request a pass
    admission/      checks of a request before it is stored
    capacity/       pools, warm pools, the instance catalogue, external training jobs
    explain/        positions, reasons, estimates: readers of the next pass's plan
    resizing/       carry out resizes of elastic jobs

They use the domain, the planner and the ports, never an AWS client. Import each module by its own name, so that a
Lambda function that makes no plan does not load the planner.
"""
