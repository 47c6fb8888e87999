"""The local stack's own machinery: processes that end when they must, builds kept by content, a clean environment."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from processes import alive
from trainmaster.local.stack.__main__ import _wait
from trainmaster.local.stack.address import StackAddress, clean_environment
from trainmaster.local.stack.build import (
    _KEPT_BUILDS,
    _delete_old,
    _key,
    as_arguments,
    build_template,
    local_parameters,
)
from trainmaster.local.stack.checkout import Checkout, SetupMissing
from trainmaster.local.stack.layer import install_packages, makefile_variables
from trainmaster.local.stack.processes import (
    GuardedProcess,
    StartFailed,
    exit_on_signals,
    free_port,
    listening,
    memory_folder,
    run,
)

SOON = 15.0
"""Seconds after which something that should have happened has not."""

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


def eventually(condition):
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.fixture
def start(tmp_path):
    with contextlib.ExitStack() as opened:

        def starter(code, name="a process"):
            log = tmp_path / f"{name}.log"
            command = [sys.executable, "-c", code]
            return opened.enter_context(contextlib.closing(GuardedProcess(name, command, dict(os.environ), log)))

        yield starter


def test_closing_ends_the_process_and_those_that_it_started(start):
    process = start(PARENT)
    process.wait_until(process.log.read_text, SOON)
    grandchild = int(process.log.read_text())
    assert alive(grandchild)
    process.close()
    assert not process.running
    eventually(lambda: not alive(grandchild))


def test_a_process_dies_with_the_one_that_started_it_even_by_sigkill(tmp_path):
    script = f"""
import os, sys, time
from pathlib import Path
from trainmaster.local.stack.processes import GuardedProcess
command = [sys.executable, "-c", {PARENT!r}]
process = GuardedProcess("parent", command, dict(os.environ), Path({str(tmp_path / "log")!r}))
print("started", flush=True)
time.sleep(600)
"""
    log = tmp_path / "log"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as starter:
        assert starter.stdout.readline() == b"started\n"
        eventually(log.read_text)
        grandchild = int(log.read_text())
        starter.send_signal(signal.SIGKILL)
    eventually(lambda: not alive(grandchild))


def test_one_that_ignores_sigterm_is_killed(start):
    process = start(STUBBORN)
    process.wait_until(process.log.read_text, SOON)
    began = time.monotonic()
    process.close()
    assert not process.running
    assert time.monotonic() - began < SOON


def test_an_early_end_is_told_with_the_last_output(start):
    process = start("print('no such table'); raise SystemExit(3)")
    with pytest.raises(StartFailed, match="a process ended while starting:\nno such table"):
        process.wait_until(lambda: False, SOON)


def test_a_late_start_is_told_with_the_deadline(start):
    with pytest.raises(StartFailed, match="was not ready in 0 seconds"):
        start("import time; time.sleep(600)").wait_until(lambda: False, 0.1)


def test_a_failed_command_is_told_with_its_output(tmp_path):
    with pytest.raises(StartFailed, match="sam failed:\nbad template"):
        run("sam", [sys.executable, "-c", "print('bad template'); raise SystemExit(1)"], os.environ, tmp_path / "log")
    run("sam", [sys.executable, "-c", ""], os.environ, tmp_path / "log")


def interrupted(closed):
    with exit_on_signals(), contextlib.ExitStack() as opened:
        opened.callback(closed.append, "closed")
        signal.raise_signal(signal.SIGTERM)


def test_sigterm_leaves_in_order():
    closed = []
    with pytest.raises(SystemExit) as left:
        interrupted(closed)
    assert (left.value.code, closed) == (128 + signal.SIGTERM, ["closed"])
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_free_port_has_no_listener():
    assert not listening(free_port())


def test_work_is_in_memory_only_where_there_is_such_a_folder_with_room(tmp_path):
    assert memory_folder(tmp_path / "none") is None
    assert memory_folder(tmp_path, min_free=1) == tmp_path
    assert memory_folder(tmp_path, min_free=2**63) is None


def test_nothing_of_the_callers_aws_settings_or_proxies_reaches_the_stack():
    environ = {"PATH": "/bin", "AWS_PROFILE": "mine", "https_proxy": "x", "TRAINMASTER_API_URL": "x", "PYTHONPATH": "x"}
    assert clean_environment(environ) == {"PATH": "/bin"}


def test_a_client_is_told_the_queue_and_nothing_that_leads_to_aws():
    environment = StackAddress("http://api", "http://aws", "http://sagemaker").environment()
    assert environment["TRAINMASTER_API_URL"] == "http://api"
    assert environment["AWS_ENDPOINT_URL"] == "http://aws"
    assert environment["AWS_ENDPOINT_URL_SAGEMAKER"] == "http://sagemaker"
    assert environment["AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"] == "http://sagemaker"
    assert environment["AWS_SHARED_CREDENTIALS_FILE"] == "/dev/null"


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "src" / "trainmaster").mkdir(parents=True)
    (tmp_path / "src" / "trainmaster" / "a.py").write_text("1")
    (tmp_path / "images" / "layer").mkdir(parents=True)
    (tmp_path / "images" / "layer" / "requirements.txt").write_text("gdal")
    platform = tmp_path / "platforms" / f"{Checkout(tmp_path).runtime}-{Checkout(tmp_path).architecture}"
    platform.mkdir(parents=True)
    (platform / "Makefile").write_text("include build.mk\n")
    for folder, parameter in ((tmp_path, "Pools=ml.p5.48xlarge=2"), (tmp_path / "images", "RegionConcurrency=5")):
        (folder / "template.yaml").write_text("Resources:")
        (folder / "samconfig.toml").write_text(
            f'[local.deploy.parameters]\nparameter_overrides = ["Runtime=python3.9", "{parameter}"]\n'
        )
    return Checkout(tmp_path)


def test_parameters_are_the_local_ones_for_this_machine_with_the_changes(checkout):
    parameters = local_parameters(checkout.project(), {"ReservationTimeoutSeconds": "60"})
    assert parameters == {
        "Runtime": f"python3.{sys.version_info.minor}",
        "Architecture": checkout.architecture,
        "Pools": "ml.p5.48xlarge=2",
        "ReservationTimeoutSeconds": "60",
    }
    assert as_arguments({"B": "2", "A": "x=1"}) == ["--parameter-overrides", "A=x=1", "B=2"]
    assert as_arguments({"A": '{"x": {}}'}) == ["--parameter-overrides", "A='{\"x\": {}}'"]
    assert local_parameters(checkout.project("images"), {})["RegionConcurrency"] == "5"


def test_a_build_is_kept_until_something_that_it_is_made_of_changes(checkout):
    platform = {"Runtime": "python3.13", "Architecture": "arm64"}
    core, images = checkout.project(), checkout.project("images")
    before = _key(core, platform)
    (checkout.source / "trainmaster" / "__pycache__").mkdir()
    (checkout.source / "trainmaster" / "__pycache__" / "a.pyc").write_bytes(b"x")
    assert _key(core, {**platform, "Pools": "ml.p5.48xlarge=3"}) == before
    assert _key(core, {**platform, "Architecture": "x86_64"}) != before
    of_images = _key(images, platform)
    assert of_images != before
    (images.layer / "requirements.txt").write_text("gdal>=3")
    assert _key(images, platform) != of_images
    assert _key(core, platform) == before, "the layer is not part of it"
    (checkout.source / "trainmaster" / "a.py").write_text("2")
    assert _key(core, platform) != before


SAM = """#!/bin/sh
mkdir "$(dirname "$0")/busy" || exit 1
sleep 0.1
while [ "$1" != --build-dir ]; do shift; done
mkdir "$2"
echo built > "$2/template.yaml"
rmdir "$(dirname "$0")/busy"
echo >> "$(dirname "$0")/builds"
"""


def test_two_stacks_that_start_at_once_build_one_after_the_other_and_the_same_only_once(checkout, tmp_path):
    sam = tmp_path / ".venv-sam" / "bin" / "sam"
    sam.parent.mkdir(parents=True)
    sam.write_text(SAM)
    sam.chmod(0o755)
    platforms = [
        {"Runtime": runtime, "Architecture": "arm64"} for runtime in ("python3.12", "python3.13", "python3.13")
    ]
    with ThreadPoolExecutor() as pool:
        built = [
            *pool.map(lambda platform: build_template(checkout.project(), platform, os.environ).read_text(), platforms)
        ]
    assert built == ["built\n"] * 3
    assert (sam.parent / "builds").read_text() == "\n\n"


def test_old_builds_are_deleted_beside_the_start_and_never_taken_for_whole_ones_meanwhile(tmp_path):
    for age in range(_KEPT_BUILDS + 2):
        (tmp_path / f"{age}").mkdir()
        (tmp_path / f"{age}" / "template.yaml").write_text("")
        os.utime(tmp_path / f"{age}", (1000 - age, 1000 - age))
    (tmp_path / "interrupted.forgotten").mkdir()
    (tmp_path / "being-made").mkdir()
    _delete_old(tmp_path)
    kept = {str(age) for age in range(_KEPT_BUILDS)} | {"being-made"}
    assert {path.name for path in tmp_path.iterdir() if not path.suffix} == kept, "at once"
    eventually(lambda: {path.name for path in tmp_path.iterdir()} == kept)


MAKEFILE = """
build-%:
	mkdir -p "$(ARTIFACTS_DIR)/python"
	echo "$(firstword $(MAKEFILE_LIST)) $(BUILT)" >> "$(ARTIFACTS_DIR)/python/made"
"""


def test_the_layers_packages_are_installed_once_and_the_deployed_layer_leads_to_them(checkout):
    images = checkout.project("images")
    (images.layer / "build.mk").write_text(MAKEFILE)
    for _ in range(2):
        install_packages(images, os.environ)
    made = (Path(makefile_variables(images)["BUILT"]) / "python" / "made").read_text()
    platform = f"{checkout.runtime}-{checkout.architecture}"
    assert made == f"{checkout.platforms / platform / 'Makefile'} \n", "once, and as for AWS"

    (images.layer / "requirements.txt").write_text("gdal>=3")
    assert not Path(makefile_variables(images)["BUILT"]).exists(), "other packages are another folder"


def test_a_project_without_a_layer_installs_nothing(checkout):
    install_packages(checkout.project(), os.environ)
    assert makefile_variables(checkout.project()) == {}
    assert not checkout.scratch.exists()


def test_the_real_layer_holds_a_way_to_what_was_built_before(tmp_path):
    said = [f"ARTIFACTS_DIR={tmp_path}/a", "BUILT=/b"]
    checkout = Checkout.here()
    folder, makefile = checkout.project("images").layer, checkout.platforms / "python3.11-arm64" / "Makefile"
    make = ["make", "--directory", folder, "--makefile", makefile, "build-ImagingLayer"]
    run("make", [*make, *said], os.environ, tmp_path / "log")
    site = tmp_path / "a" / "python" / "lib" / "python3.11" / "site-packages"
    assert {path.name: path.read_text() for path in site.iterdir()} == {"imaging.pth": "/b/python\n"}


def test_layers_packages_that_cannot_be_installed_are_told_and_not_kept(checkout):
    images = checkout.project("images")
    (images.layer / "build.mk").write_text("build-%:\n\tmkdir $(ARTIFACTS_DIR) && exit 3\n")
    with pytest.raises(StartFailed, match="installing the layer's packages failed"):
        install_packages(images, os.environ)
    assert not Path(makefile_variables(images)["BUILT"]).exists()


def test_ctrl_c_ends_a_stack_that_waits_without_an_error(checkout, capsys):
    file = checkout.environment_file
    file.parent.mkdir(parents=True, exist_ok=True)
    seen = []

    def press() -> None:
        while not file.exists() or not file.read_text():
            time.sleep(0.01)
        seen.append(file.read_text())
        os.kill(os.getpid(), signal.SIGINT)

    user = threading.Thread(target=press)
    user.start()
    assert _wait(StackAddress("http://127.0.0.1:1/prod", "http://127.0.0.1:1", "http://127.0.0.1:2"), checkout) == 0
    user.join()
    assert "export TRAINMASTER_API_URL=http://127.0.0.1:1/prod\n" in seen[0]
    assert "Shutting down" in capsys.readouterr().err
    assert not file.exists()


def test_a_missing_environment_is_told_with_the_command_that_makes_it(checkout):
    with pytest.raises(SetupMissing, match=r"\.venv-ministack/bin/ministack is missing: run `make install-all`"):
        _ = checkout.ministack
