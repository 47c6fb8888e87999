"""Contents of the distributions: `trainmaster-worker` for training containers, `trainmaster` for everything else."""

import email
import json
import re
import subprocess
import sys
import tarfile
import venv
import zipfile

import pytest

WORKER = "packaging/trainmaster-worker"
INSTALLER = {"pip", "setuptools"}
IN_REPOSITORY = re.compile(
    r"https://(?:github|raw\.githubusercontent)\.com/trainmaster/trainmaster/(?:blob/)?main/([^#]+)"
)
AT_THE_TOP = {
    *{".ci", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "NOTICE", "README.md"},
    *{
        "benchmarks",
        "docs",
        "events",
        "examples",
        "images",
        "packaging",
        "platforms",
        "pyproject.toml",
        "samconfig.toml",
    },
    *{"scripts", "src", "template.yaml", "tests"},
}
"""Files and folders at the top of the repository."""
INSTALLED = """
import json, re
from importlib.metadata import distributions, requires
def plain(name): return re.sub(r"[-_.]+", "-", re.match(r"[\\w.-]+", name)[0]).lower()
def needed(name): return {plain(line) for line in requires(name) or () if "extra ==" not in line}
needs = {"boto3"}
while needs != (more := needs.union(*map(needed, needs))):
    needs = more
print(json.dumps([sorted({plain(one.metadata["Name"]) for one in distributions()}), sorted(needs)]))
"""
IMPORT_ALL = """
import importlib, json, pkgutil, sys, trainmaster.worker
missing = {}
for found in pkgutil.walk_packages(trainmaster.worker.__path__, "trainmaster.worker."):
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        missing[found.name] = error.name
print(json.dumps(missing))
"""
TORCHRUNS_HANDLER = """
from importlib.metadata import entry_points
(handler,) = entry_points(group="torchrun.handlers")
print(handler.name, callable(handler.load()()))
"""


@pytest.fixture(scope="module")
def wheels(checkout, tmp_path_factory):
    """The wheels of both distributions, as they are published."""
    folder = tmp_path_factory.mktemp("wheels")
    for project in (".", WORKER):
        build = [sys.executable, "-m", "uv", "build", "--quiet", "--wheel", project, "--out-dir", folder]
        subprocess.run(build, cwd=checkout.root, check=True)
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def container(wheels, tmp_path_factory):
    return installed(wheels["trainmaster_worker"], tmp_path_factory.mktemp("container"))


@pytest.fixture(scope="module")
def desk(wheels, tmp_path_factory):
    return installed(wheels["trainmaster"], tmp_path_factory.mktemp("desk"))


def installed(wheel, folder):
    """A fresh environment in which one plain command has installed the wheel."""
    venv.create(folder, with_pip=True)
    output(folder, "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    return folder


CONSOLE = """
import json
from trainmaster.console.assets import load_assets
print(json.dumps(["/".join(parts) for parts in load_assets()]))
"""


def output(environment, program, *arguments, **options):
    command = [environment / "bin" / program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=environment, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_container_gets_boto3_and_nothing_else(container):
    everything, boto3_needs = json.loads(output(container, "python", "-c", INSTALLED))
    assert set(everything) - INSTALLER == {"trainmaster-worker", *boto3_needs}


def test_all_of_the_worker_is_there_and_only_what_extends_torch_needs_it(container):
    missing = json.loads(output(container, "python", "-c", IMPORT_ALL))
    assert set(missing.values()) == {"torch"}
    assert {name.rpartition(".")[0] for name in missing} == {"trainmaster.worker.torch"}
    assert output(container, "python", "-c", TORCHRUNS_HANDLER).split() == ["dynamodb", "True"]


def test_trainmaster_run_runs_a_script_in_a_container(container):
    script = container / "train.py"
    script.write_text("import boto3, sys\nfrom trainmaster.worker import Rendezvous, training\nprint(sys.argv[1:])\n")
    config = container / "ml" / "input" / "config" / "resourceconfig.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}))
    job = {"SM_BASE_DIR": str(container / "ml"), "TRAINING_JOB_NAME": "vision"}
    assert "entry point of a training container" in output(container, "trainmaster-run", "--help")
    ran = output(container, "trainmaster-run", "train.py", "--lr", "0.1", env=job)
    assert ran.splitlines()[-1] == "['--lr', '0.1']"


def test_one_command_brings_the_command_line_and_the_client_with_the_worker_in_it(desk):
    assert "submit" in output(desk, "trainmaster", "--help")
    assert output(desk, "python", "-c", "from trainmaster import ApiClient; print(ApiClient.__name__)") == "ApiClient\n"
    assert json.loads(output(desk, "python", "-c", IMPORT_ALL)).keys()
    page = json.loads(output(desk, "python", "-c", CONSOLE))
    assert {"index.html", "app.js", "vendor/preact.mjs"} <= set(page)


def test_the_local_stack_of_an_installed_package_says_that_it_needs_a_checkout(desk):
    command = [desk / "bin" / "python", "-m", "trainmaster.local.stack"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=desk)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [done.stderr.strip()], "no traceback"
    assert "clone the repository" in done.stderr


def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_a_source_distribution_has_the_tracked_files_and_builds_the_same_wheel(checkout, wheels, tmp_path):
    build = [sys.executable, "-m", "uv", "build", "--quiet", "--sdist", ".", "--out-dir", tmp_path]
    subprocess.run(build, cwd=checkout.root, check=True)
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(tmp_path, filter="data")
    listed = subprocess.run(["git", "ls-files"], cwd=checkout.root, capture_output=True, text=True, check=True).stdout
    assert {"template.yaml", "docs/quickstart.md", "LICENSE"} <= files
    assert {path for path in files if not path.endswith("PKG-INFO")} <= {*listed.splitlines(), ".gitignore"}
    assert {path.partition("/")[0] for path in listed.splitlines()} <= AT_THE_TOP, "a stray file or folder is committed"
    build = [sys.executable, "-m", "uv", "build", "--quiet", "--wheel", ".", "--out-dir", tmp_path]
    subprocess.run(build, cwd=source.with_name(source.name.removesuffix(".tar.gz")), check=True)
    (again,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(again) as ours, zipfile.ZipFile(wheels["trainmaster"]) as theirs:
        assert sorted(ours.namelist()) == sorted(theirs.namelist())


@pytest.mark.parametrize("name", ["trainmaster", "trainmaster_worker"])
def test_the_index_page_has_authors_classifiers_and_links_that_lead_somewhere(checkout, wheels, name):
    found = metadata(wheels[name])
    assert found["Author"]
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Requires-Python"] == ">=3.10"
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.10"} <= set(found.get_all("Classifier"))
    urls = dict(line.split(", ") for line in found.get_all("Project-URL"))
    assert {"Homepage", "Documentation", "Source", "Changelog", "Issues"} == set(urls)
    links = [*urls.values(), *re.findall(r"\]\(([^)\s]+)\)", found.get_payload())]
    assert not [link for link in links if not link.startswith("https://")]
    in_checkout = [found[1] for link in links if (found := IN_REPOSITORY.match(link))]
    assert "docs/README.md" in in_checkout
    assert not [path for path in in_checkout if not (checkout.root / path).exists()]
