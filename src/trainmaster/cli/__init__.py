"""The command line: thin commands over the API client.

    main.py      the entry point
    program.py   the program: global options, errors as exit codes
    commands.py  the list of commands, each imported when it is called
    examples.py  the examples in the help of each command
    kinds.py     commands for other kinds of jobs
    common/      what commands share: context, options, exit codes, waiting, reading requests
    jobs/        commands for jobs, one per module
    sweeps/      commands for sweeps
    queue/       commands for pools and settings
    reports/     commands that report: shares, usage, the schedule, the live queue
    deployment/  commands that deploy and examine the queue
    output/      tables, sentences and progress displays

Each other module has the command of its name.

Commands import boto3, httpx and rich only when they need them, and nothing of the service or its adapters.
"""
