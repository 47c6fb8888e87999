"""The core works without the package of image jobs, in a copy of `src` that does not have it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
SOURCE = TESTS.parent / "src"
EVERY_MODULE = """
import pkgutil, sys
from importlib import import_module
import trainmaster

names = [module.name for module in pkgutil.walk_packages(trainmaster.__path__, "trainmaster.")]
assert {"trainmaster.handlers.api.app", "trainmaster.handlers.manager", "trainmaster.cli.program"} <= set(names)
for name in names:
    try:
        if not name.endswith(".__main__"):
            import_module(name)
    except ImportError as error:
        # Packages that users bring: modules of the worker and of SDK sessions run beside them.
        assert str(error.name).partition(".")[0] in {"torch", "jax", "sagemaker", "airflow"}, (name, error)
"""
A_JOB_THROUGH_THE_HANDLERS = """
import json
from api_world import CONTEXT, rest_event
from trainmaster.bootstrap import Application, Settings
from trainmaster.handlers.api.app import build_app
from world import QUEUE, TABLE, World, a_request

world = World()
application = Application(Settings(queue=QUEUE, table=TABLE, pools=world.pools, allowed_roles=("*",)))
application.clock = world
application.__dict__ |= {"store": world.api_context.store, "publisher": world.queue}
app = build_app(application)

def call(method, path, body=None):
    answer = app.resolve(rest_event(method, path, body), CONTEXT)
    return answer["statusCode"], json.loads(answer["body"])

assert call("POST", "/add-job", a_request("job1", training_seconds=300))[0] == 202
world.run(200)
assert call("GET", "/jobs/job1")[1]["jobState"] == "running"
world.run_until_ended("job1")
status, job = call("GET", "/jobs/job1")
assert (job["jobState"], job["kind"], job["details"]) == ("completed", "training", None)
for path in ("/image-jobs", "/plan"):
    status, refused = call("POST", path, {"jobId": "harbour-7", "imageUrls": ["s3://images/a.tif"]})
    assert (status, refused["error"]["type"]) == (409, "NotOffered"), refused
status, document = call("GET", "/openapi.json")
assert status == 200 and "/add-job" in document["paths"]
assert "image" not in json.dumps(document).replace("trainingImage", "").lower().replace("trainingimage", "")
"""
WITHOUT_IMAGES = """
from importlib.util import find_spec
from pathlib import Path
import trainmaster

assert Path(trainmaster.__file__).is_relative_to(Path(__file__).parent)
assert find_spec("trainmaster.images") is None
"""
CORE_TESTS = (
    "unit/handlers",
    "unit/cli/test_cli_program.py",
    "functional/test_admission.py",
    "functional/test_openapi.py",
)


@pytest.fixture(scope="module")
def core(tmp_path_factory) -> Path:
    """A copy of the sources without image jobs; its module `without_images` checks that Python imports the copy."""
    copy = tmp_path_factory.mktemp("core") / "src"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("images", "__pycache__"))
    (copy / "without_images.py").write_text(WITHOUT_IMAGES)
    return copy


def run(core: Path, *arguments: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-W", "ignore", *arguments]
    environment["PYTHONPATH"] = str(core)
    done = subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_is_imported(core):
    run(core, "-c", "import without_images" + EVERY_MODULE)


def test_a_job_is_submitted_started_and_ended_through_the_handlers(core):
    run(core, "-c", "import without_images" + A_JOB_THROUGH_THE_HANDLERS)


@pytest.mark.slow
def test_tests_of_the_core_pass_without_what_tests_of_image_jobs_share(core):
    options = ("-q", "-p", "no:cacheprovider", "-p", "without_images", "-o", "pythonpath=.. contract")
    run(core, "-m", "pytest", *options, *CORE_TESTS)
