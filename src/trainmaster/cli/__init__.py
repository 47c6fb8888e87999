"""The command line: thin commands over the API client.

    main.py   the program: global options, the list of commands, errors as exit codes
    common/   what commands share: context, options, exit codes, waiting, reading requests
    jobs/     commands for jobs, one per module
    queue/    commands for pools and settings
    output/   tables, sentences and progress displays

Commands import boto3, httpx and rich only when they need them, and nothing of the service or its adapters.
"""
