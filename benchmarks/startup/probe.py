"""A new process started by `cold_start`: does what a new Lambda environment does, and prints the times as JSON.

It imports nothing before its clock runs but modules that the interpreter has loaded.
"""

import json
import os
import sys
import time

PARTS: dict[str, dict[str, float]] = {}


def timed(name, call):  # noqa: ANN001, ANN201 -- annotations would import typing before the clock runs
    """Return the result of the call; record its wall time and CPU time in PARTS, in milliseconds."""
    clock, processor = time.perf_counter(), time.process_time()
    result = call()
    taken = (time.perf_counter() - clock, time.process_time() - processor)
    PARTS[name] = {"clock": taken[0] * 1000, "processor": taken[1] * 1000}
    return result


def api() -> None:
    """Time the API function: import, and the objects of its first call."""
    handler = timed("import the handler", lambda: __import__("trainmaster.handlers.api.app", fromlist=["handler"]))
    bootstrap = sys.modules["trainmaster.bootstrap"]
    application = timed("settings", bootstrap.application)
    timed("routes and models", lambda: handler.build_app(application))
    timed("request model", lambda: application.admission.shape_problems(json.loads(os.environ["PROBE_REQUEST"])))
    timed("DynamoDB client", lambda: application.store)
    timed("SQS client", lambda: application.publisher)


def manager() -> None:
    """Time the manager function: import, and the objects of its first call."""
    timed("import the handler", lambda: __import__("trainmaster.handlers.manager", fromlist=["handler"]))
    bootstrap = sys.modules["trainmaster.bootstrap"]
    application = timed("settings", bootstrap.application)
    timed("DynamoDB client", lambda: application.store)
    timed("SageMaker client", lambda: application.launcher)
    timed("SQS client", lambda: application.publisher)


if __name__ == "__main__":
    {"api": api, "manager": manager}[sys.argv[1]]()
    print(json.dumps({"parts": PARTS, "modules": len(sys.modules)}))
