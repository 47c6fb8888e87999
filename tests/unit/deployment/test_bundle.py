"""Bundles and the packaged template: equal input gives equal bytes, and nothing but code moves."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cfnlint.decode import decode
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.client.api.errors import Refused
from trainmaster.deployment.bundle import (
    Sources,
    archive,
    build,
    functions_of,
    packaged,
    read_template,
    template_archive,
)

ROOT = Path(__file__).parents[3]
FILES = st.dictionaries(st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8}){0,2}\.py", fullmatch=True), st.binary(max_size=64))


def written(folder: Path, files: dict[str, bytes]) -> Path:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


@given(files=FILES, order=st.randoms(use_true_random=False))
def test_equal_files_give_equal_archives_whatever_their_order_times_and_folder(
    tmp_path_factory: Any, files: dict[str, bytes], order: Any
) -> None:
    shuffled = [*files.items()]
    order.shuffle(shuffled)
    first = written(tmp_path_factory.mktemp("a"), files)
    second = written(tmp_path_factory.mktemp("b"), dict(shuffled))
    for path in second.rglob("*"):
        os.utime(path, (1, 1))
    found = archive(first, "F")
    assert found == archive(second, "F")
    with zipfile.ZipFile(io.BytesIO(found.body)) as zipped:
        assert {name: zipped.read(name) for name in zipped.namelist()} == files


@given(files=FILES, more=st.binary(min_size=1, max_size=8))
def test_another_content_has_another_key(tmp_path_factory: Any, files: dict[str, bytes], more: bytes) -> None:
    first = archive(written(tmp_path_factory.mktemp("a"), files | {"x.py": b""}), "F")
    second = archive(written(tmp_path_factory.mktemp("b"), files | {"x.py": more}), "F")
    assert first.key != second.key


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return Sources.here().document()


def test_the_template_is_read_as_cloudformation_reads_it(document: dict[str, Any]) -> None:
    known, _ = decode(str(ROOT / "template.yaml"))
    assert json.loads(json.dumps(document)) == json.loads(json.dumps(known))


def test_only_the_code_of_functions_changes(document: dict[str, Any]) -> None:
    functions = functions_of(document)
    assert functions == ["ApiFunction", "TaskFunction", "PipelineFunction", "ManagerFunction"]
    whole = packaged(document, {name: f"s3://b/{name}.zip" for name in functions})
    back = json.loads(template_archive(whole).body)
    assert back["Globals"]["Function"].pop("CodeUri", None) is None
    for name in functions:
        assert back["Resources"][name]["Properties"].pop("CodeUri") == f"s3://b/{name}.zip"
        back["Resources"][name]["Metadata"] |= {
            member: document["Resources"][name]["Metadata"][member] for member in ("BuildMethod", "ContextPath")
        }
    back["Globals"]["Function"]["CodeUri"] = document["Globals"]["Function"]["CodeUri"]
    assert back == json.loads(json.dumps(document))


def test_cloudformation_takes_the_size_of_the_template(document: dict[str, Any]) -> None:
    assert len(template_archive(document).body) < 1_000_000


def test_short_functions_are_read() -> None:
    text = "A: !GetAtt X.Y.Z\nB: !Sub 'a${C}'\nC: !If [D, !Ref E, {F: !Condition G}]\n"
    assert read_template(text) == {
        "A": {"Fn::GetAtt": ["X", "Y.Z"]},
        "B": {"Fn::Sub": "a${C}"},
        "C": {"Fn::If": ["D", {"Ref": "E"}, {"F": {"Condition": "G"}}]},
    }


def test_the_builder_gets_the_platform_and_its_failure_is_told(tmp_path: Path) -> None:
    commands = []

    def fails(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        commands.append(list(command))
        return subprocess.CompletedProcess(command, 1, "", "Traceback\nERROR: No matching distribution")

    sources = Sources(Path("template.yaml"), Path("build_bundle.py"))
    with pytest.raises(Refused, match=r"ApiFunction cannot be built: ERROR: No matching distribution"):
        build(sources, "ApiFunction", runtime="python3.13", architecture="arm64", folder=tmp_path, execute=fails)
    assert commands[0][:3] == [sys.executable, "build_bundle.py", "ApiFunction"]
    assert commands[0][3:7] == ["--python", "3.13", "--machine", "aarch64"]
