"""Seeded days of the whole shipped system on a virtual clock, checked from SageMaker's side.

`python -m tests.simulation --days 1000` plays days; see `story` for what a day has, `checks` for what must hold.
"""
