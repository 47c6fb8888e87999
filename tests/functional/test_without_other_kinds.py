"""The core works without the package of image jobs: a job is submitted, started and ended through the handlers."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent
PROGRAM = """
import json, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("trainmaster.images"):
            raise ImportError(f"{name} is not there")

sys.meta_path.insert(0, Absent())
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
assert "image" not in json.dumps(document).replace("trainingImage", "").lower().replace("trainingimage", "")
assert not [name for name in sys.modules if name.startswith("trainmaster.images")]
"""


def test_submit_pass_start_and_end_need_nothing_of_image_jobs():
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
