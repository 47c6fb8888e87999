"""Puts a queue into an AWS account from the installed package, and examines it there.

    bundle.py      builds the Lambda bundles and the template
    bucket.py      the bucket to which they are uploaded
    parameters.py  values of the template's parameters
    stack.py       a CloudFormation stack and its change sets
    doctor.py      the checks of `trainmaster doctor`
    trial.py       the small training job of `trainmaster doctor --try`

It runs on the user's machine with the user's credentials, and gets its session and its clocks as arguments.
"""
