"""The distribution for training containers holds what `trainmaster.worker` imports, and agrees with the whole one."""

import tomllib
from pathlib import Path

import build_bundle

ROOT = Path(__file__).parents[3]
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FOLDER = ROOT / "packaging" / "trainmaster-worker"
PYPROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text())
WORKER = PYPROJECT["project"]
MAY_IMPORT = {"boto3", "botocore", "jax", "torch"}
"""boto3 brings botocore; torch and JAX are the image's own, imported late if at all."""


def shipped():
    for source in PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]:
        path = (FOLDER / source).resolve()
        yield from path.rglob("*.py") if path.is_dir() else [path]


def test_it_holds_what_the_worker_imports_and_no_more():
    worker = ROOT / "src" / "trainmaster" / "worker"
    reached, packages = {}, set()
    for path in worker.rglob("*.py"):
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        modules, outside = build_bundle.reached(name)
        reached |= modules
        packages |= outside
    assert {path for path in shipped() if path.suffix == ".py"} == set(reached.values())
    assert packages <= MAY_IMPORT


def test_both_distributions_are_of_one_version_and_agree_on_what_they_share():
    assert WORKER["dynamic"] == ["version"]
    assert "version" in WHOLE["dynamic"]
    projects = {ROOT: tomllib.loads((ROOT / "pyproject.toml").read_text()), FOLDER: PYPROJECT}
    sources = {(at / project["tool"]["hatch"]["version"]["path"]).resolve() for at, project in projects.items()}
    assert sources == {ROOT / "src" / "trainmaster" / "domain" / "release.py"}
    assert set(WORKER["dependencies"]) == {line for line in WHOLE["dependencies"] if line.startswith("boto3")}
    assert WORKER["requires-python"] == WHOLE["requires-python"]
    assert WORKER["entry-points"] == WHOLE["entry-points"]
    assert WORKER["scripts"] == {"trainmaster-run": WHOLE["scripts"]["trainmaster-run"]}


def test_no_document_installs_without_dependencies():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]:
        assert "--no-deps" not in path.read_text(), path
