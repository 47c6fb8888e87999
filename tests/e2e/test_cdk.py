"""The CDK example synthesizes the template of `trainmaster deploy`: unchanged but for the defaults of parameters."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

from trainmaster.deployment.bundle import Sources, functions_of, packaged, template_archive

EXAMPLE = Path(__file__).parents[2] / "examples" / "cdk"
OF_CDK = {"Parameters": {"BootstrapVersion"}, "Rules": {"CheckBootstrapVersion"}}
"""CDK adds these to each stack that it uploads itself."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="CDK runs on Node")
def test_the_example_synthesizes_the_template_with_the_parameters_as_defaults(tmp_path):
    environment, app = tmp_path / "venv", tmp_path / "app"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--requirement", EXAMPLE / "requirements.txt"]
    subprocess.run(pip, check=True, timeout=600)
    shutil.copytree(EXAMPLE, app)
    document = Sources.here().document()
    places = {name: f"s3://bundles/{name}.zip" for name in functions_of(document)}
    text = template_archive(packaged(document, places)).body
    (app / "queue.json").write_bytes(text)
    context = {"CDK_OUTDIR": str(tmp_path / "out"), "CDK_CONTEXT_JSON": json.dumps({"parameters": "parameters.json"})}
    subprocess.run([python, "app.py"], cwd=app, env={**os.environ, **context}, check=True, timeout=600)
    wanted, found = json.loads(text), json.loads((tmp_path / "out" / "trainmaster.template.json").read_text())
    for part, names in OF_CDK.items():
        for name in names:
            del found[part][name]
    for name, value in json.loads((EXAMPLE / "parameters.json").read_text()).items():
        wanted["Parameters"][name]["Default"] = value
    assert found == wanted
