"""Use cases. Read `run_pass` first: one run of the manager, from the snapshot to the applied plan.

    run_pass         read a snapshot, reconcile, schedule, apply the plan
    reconcile        resume unfinished actions, poll SageMaker
    apply_plan       commit each decision, then carry it out
    launch           create and stop training jobs
    attempt_request  the CreateTrainingJob request of an attempt
    observe          apply SageMaker's reports
    dependencies     jobs that wait for a time or for other jobs
    context, faults  dependencies and error isolation of the manager's actions
    throttling       verbs of SageMaker that a pass stops calling
    kinds            kinds of jobs beside training jobs
    submit, change   the API's commands: submit, plan, cancel, hold, priority, settings
    wake             request a pass
    access/          authorization
    admission/       checks of a request before it is stored
    auditing/        the record of who changes what
    callbacks/       executions of orchestrators that wait for jobs
    capacity/        pools, warm pools, the instance catalogue, external training jobs
    events/          delivery of the outbox
    explain/         positions, reasons, estimates: readers of the next pass's plan
    metrics/         metrics of the manager's passes
    resizing/        carry out resizes of elastic jobs
    restoring/       exports and imports, a paused manager, restored tables

They use the domain, the planner and the ports, never an AWS client. Import each module by its own name, so that a
Lambda function that makes no plan does not load the planner.
"""
