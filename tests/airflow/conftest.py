"""Runs only where Airflow is installed (.venv-airflow); elsewhere there is nothing to collect."""

import logging
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "unit" / "client")]

try:
    version("apache-airflow-providers-amazon")
except PackageNotFoundError:
    collect_ignore_glob = ["test_*.py"]
else:
    HOME = TemporaryDirectory(prefix="airflow-", ignore_cleanup_errors=True)
    # Airflow reads these when it is imported.
    os.environ |= {
        "AIRFLOW_HOME": HOME.name,
        "AIRFLOW__AWS__SESSION_FACTORY": "airflow_factory.QuickFactory",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
    }

    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # moto's server has a line for each call

    from client_sdk_fixtures import moto, stage

    __all__ = ["moto", "stage"]
