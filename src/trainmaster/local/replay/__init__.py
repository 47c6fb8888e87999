"""Replays a trace of jobs through the shipped queue on a virtual clock, to compare policies.

program.py              the program `trainmaster replay`
trace/                  jobs of a CSV file, or of an account's history; requests made of them
queue.py                runs the shipped passes with the in-memory store and the simulated SageMaker
reference_policies.py   reference policies that know every duration
runs.py                 replays a trace under a policy by its name
forecasts.py            compares estimated starts with actual starts
report/                 results, figures, tables, pictures
"""
