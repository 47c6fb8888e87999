"""Experiments with the placement policies: `python -m benchmarks.placement`, or `make bench-placement`.

They repeat those of Liu et al., Journal of Software 33(3), 2022, section 4. The shipped planner makes every decision.
"""
