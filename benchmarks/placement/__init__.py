"""The article's experiments with the placement policies: `python -m benchmarks.placement`, or `make bench-placement`.

Liu et al., Journal of Software 33(3), 2022, section 4. Every decision is the shipped planner's; what stands in for
SageMaker, and for machines that SageMaker does not have, says so. It must not hold any rule of the queue.
"""
