"""The command line: thin commands over the API client.

    main.py   the entry point
    program.py   the program: global options, errors as exit codes
    commands.py  the list of commands, each imported when it is called
    examples.py  the examples in the help of each command
    common/   what commands share: context, options, exit codes, waiting, reading requests
    jobs/     commands for jobs, one per module
    queue/    commands for pools and settings
    deployment/   commands that deploy and examine the queue
    output/   tables, sentences and progress displays

Commands import boto3, httpx and rich only when they need them, and nothing of the service or its adapters.
"""
