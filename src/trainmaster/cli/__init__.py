"""The command line: thin commands over the API client, one a file.

    main.py      the program: global options, the list of commands, errors become exit codes
    tools.py     what every command works with: the way to the API, clocks, streams
    exits.py     exit codes, and which error means which
    render.py    tables, JSON, colours; times.py and words.py: moments and sentences
    progress.py  what is shown while jobs are waited for
    request.py   reading a request from a file and setting its tags

It must not import the service or its adapters, nor boto3, httpx or rich before a command needs them.
"""
