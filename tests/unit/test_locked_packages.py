"""The locks of the Lambda bundles and layers, their installation by hash, and the SBOM."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement

import build_bundle
from bundle_contract import files, tree
from locked_packages import (
    Artifact,
    Pin,
    install,
    lock_of,
    main,
    needed,
    normalize,
    platforms_of,
    read_lock,
    wheel_options,
    write_sbom,
)
from permissions import ROOT, template
from template_checks import platforms_of as platforms_of_template
from trainmaster import __version__

LISTS = ("src", "images/layer")
PLATFORMS = [(python, machine) for _, python, machine in platforms_of_template(template())]


@pytest.mark.parametrize("folder", LISTS)
def test_there_is_a_lock_for_every_platform_and_no_other(folder):
    expected = {lock_of(ROOT / folder / "locks", *platform) for platform in PLATFORMS}
    assert {*(ROOT / folder / "locks").iterdir()} == expected


@pytest.mark.parametrize("folder", LISTS)
@pytest.mark.parametrize("platform", PLATFORMS, ids="-".join)
def test_a_lock_pins_what_is_listed_and_all_that_it_needs(folder, platform):
    pins = {pin.name: pin for pin in read_lock(lock_of(ROOT / folder / "locks", *platform))}
    lines = (ROOT / folder / "requirements.txt").read_text().splitlines()
    listed = {each.name: each for each in (Requirement(line) for line in lines if not line.startswith("#"))}
    assert {name for name, pin in pins.items() if "requirements.txt" in pin.via} == listed.keys()
    assert all(each.specifier.contains(pins[name].version) for name, each in listed.items())
    assert all(set(pin.via) <= {"requirements.txt", *pins} for pin in pins.values())
    assert needed(pins.values(), listed.keys()) == [*pins.values()]


@pytest.mark.parametrize("folder", LISTS)
def test_locks_name_no_place_to_download_from(folder):
    for path in (ROOT / folder / "locks").iterdir():
        assert not re.search(r"://|--(index|extra|find)", path.read_text()), path


@pytest.mark.parametrize(
    "line", ["a==1", "a>=1 --hash=sha256:" + "0" * 64, "a==1 --hash=md5:" + "0" * 32 + "  # via b"]
)
def test_a_line_without_version_hash_or_reason_is_refused(line, tmp_path):
    (tmp_path / "lock").write_text(f"# Header\n{line}\n")
    with pytest.raises(ValueError, match="not a locked package: a"):
        read_lock(tmp_path / "lock")


def test_a_subset_has_what_it_needs_and_no_more():
    pins = [a_pin("a"), a_pin("b"), a_pin("c", "a"), a_pin("d", "c", "b"), a_pin("e", "b")]
    assert [pin.name for pin in needed(pins, {"a"})] == ["a", "c", "d"]


def a_pin(name: str, *via: str, sha256: str = "0" * 64) -> Pin:
    return Pin(name, "1.0", sha256, via or ("requirements.txt",))


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A wheel in a folder where pip finds it, and no index; its SHA-256."""
    path = tmp_path / "wheels" / "given-1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("given/__init__.py", "")
        archive.writestr("given/tests/__init__.py", "")
        archive.writestr("given/given.pyi", "")
        archive.writestr("given-1.0.dist-info/METADATA", METADATA)
        archive.writestr("given-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("given-1.0.dist-info/licenses/LICENSE", "MIT")
        archive.writestr("given-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return hashlib.sha256(path.read_bytes()).hexdigest()


METADATA = "Metadata-Version: 2.1\nName: given\nVersion: 1.0\nClassifier: License :: OSI Approved :: MIT License\n"


def test_a_wheel_is_installed_by_its_hash_without_what_no_function_reads(wheel, tmp_path):
    install([a_pin("given", sha256=wheel)], wheel_options("3.13", "aarch64"), tmp_path / "site")
    assert {str(path) for path in files(tmp_path / "site")} == {
        "given/__init__.py",
        "given-1.0.dist-info/METADATA",
        "given-1.0.dist-info/WHEEL",
        "given-1.0.dist-info/licenses/LICENSE",
    }


@pytest.mark.usefixtures("wheel")
def test_a_wheel_with_another_hash_is_not_installed(tmp_path, capfd):
    with pytest.raises(subprocess.CalledProcessError):
        install([a_pin("given")], wheel_options("3.13", "aarch64"), tmp_path / "site")
    assert "DO NOT MATCH THE HASHES" in capfd.readouterr().err
    assert not (tmp_path / "site").exists()


def test_pip_is_asked_for_wheels_of_the_platform_alone(tmp_path):
    asked: list[str] = []
    install([a_pin("a")], wheel_options("3.11", "aarch64"), tmp_path, run=asked.extend)
    expected = {"--python-version=3.11", "--platform=manylinux2014_aarch64", "--no-compile", "--no-deps"}
    assert expected | {"--require-hashes", "--only-binary=:all:"} <= set(asked)
    assert Path(asked[0]) == Path(sys.executable)
    assert platforms_of("3.11", "aarch64") == ["manylinux2014_aarch64"], "python3.11 is on Amazon Linux 2"
    assert platforms_of("3.13", "x86_64") == ["manylinux_2_28_x86_64", "manylinux2014_x86_64"]


def test_the_sbom_is_valid_and_says_what_needs_what(tmp_path):
    (tmp_path / "a-1.0.dist-info").mkdir()
    (tmp_path / "a-1.0.dist-info" / "METADATA").write_text("Name: a\nLicense-Expression: MIT OR Apache-2.0\n")
    pins = [a_pin("a"), a_pin("b", "a")]
    write_sbom(Artifact("ApiFunction", "python3.13-aarch64", "0.1.0"), pins, tmp_path, tmp_path)
    text = (tmp_path / "sbom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    sbom = json.loads(text)
    assert [(each["purl"], each.get("licenses")) for each in sbom["components"]] == [
        ("pkg:pypi/a@1.0", [{"expression": "MIT OR Apache-2.0"}]),
        ("pkg:pypi/b@1.0", None),
    ]
    assert sbom["components"][0]["hashes"] == [{"alg": "SHA-256", "content": "0" * 64}]
    assert {each["ref"]: each["dependsOn"] for each in sbom["dependencies"]} == {
        "ApiFunction": ["pkg:pypi/a@1.0"],
        "pkg:pypi/a@1.0": ["pkg:pypi/b@1.0"],
        "pkg:pypi/b@1.0": [],
    }


def test_a_layer_is_built_from_its_lock_with_an_sbom(wheel, tmp_path):
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "python3.12-x86_64.txt").write_text(f"# Header\n{a_pin('given', sha256=wheel).line}\n")
    built = []
    for name in ("one", "two"):
        into = tmp_path / name
        arguments = ["--python", "3.12", "--machine", "x86_64", "--locks", str(tmp_path / "locks")]
        main(["Layer", *arguments, "--into", str(into)])
        assert (into / "python" / "given" / "__init__.py").is_file()
        sbom = (into / "sbom.cdx.json").read_text()
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(sbom) is None
        assert json.loads(sbom)["components"][0]["licenses"] == [{"license": {"name": "MIT License"}}]
        built.append(tree(into))
    assert built[0] == built[1]


def test_files_differ_neither_in_time_nor_in_rights(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "folder").mkdir(parents=True)
        (tmp_path / name / "folder" / "file").write_text("same")
    (tmp_path / "one" / "folder" / "file").chmod(0o755)
    assert tree(tmp_path / "one") != tree(tmp_path / "two")
    normalize(tmp_path / "one")
    normalize(tmp_path / "two")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_the_version_in_the_sbom_of_a_bundle_is_the_projects():
    assert build_bundle.version() == __version__


def test_the_audit_covers_every_lock_and_fails_where_a_package_cannot_be_looked_up():
    command = ["make", "--dry-run", "--assume-old=.venv-audit/.stamp", "audit"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    said = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout
    locks = {f"{folder}/locks/{path.name}" for folder in LISTS for path in (ROOT / folder / "locks").iterdir()}
    assert set(re.findall(r"-r (\S+)", said)) == locks
    assert {"--strict", "--require-hashes"} <= set(said.split())


@pytest.mark.parametrize(
    ("printed", "code", "told"),
    [
        ("No known vulnerabilities found", 0, ""),
        ("Found 1 known vulnerability in 1 package", 1, "these packages have known vulnerabilities"),
        (
            "ERROR:pip_audit._cli:a: Dependency not found on PyPI and could not be audited: a (1.0)",
            1,
            "nothing was audited",
        ),
        ("requests.exceptions.ConnectionError: Failed to resolve", 1, "nothing was audited"),
    ],
)
def test_an_audit_says_whether_packages_are_vulnerable_or_could_not_be_looked_up(tmp_path, printed, code, told):
    audit = tmp_path / "pip-audit"
    audit.write_text(f"#!/bin/sh\necho '{printed}' >&2\nexit {code}\n")
    audit.chmod(0o755)
    command = ["make", "--silent", "--assume-old=.venv-audit/.stamp", f"PIP_AUDIT={audit}", "audit"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert (done.returncode != 0, done.stdout) == (code != 0, f"{printed}\n")
    assert told in done.stderr
    assert not told or done.stderr.startswith(f"make audit: {told}")
