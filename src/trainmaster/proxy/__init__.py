"""A local endpoint of AWS for programs in any language, behind `trainmaster exec`.

app.py           the server: the token, the queue's operations, all others passed on
wire.py          requests and answers as AWS's SDKs send and read them
upstream.py      sends requests to AWS, signed with the user's credentials
accounts.py      the account of an access key
environment.py   the environment of the command
process.py       runs the endpoint beside the command, until the command ends
"""
