"""The page's own functions under `node --test`, its vendored libraries, and what the wheel holds of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from test_console_feed import VALUES

from trainmaster.console.assets import load_assets
from trainmaster.console.differences import differences

ROOT = Path(__file__).parents[3]
STATIC = ROOT / "src" / "trainmaster" / "console" / "static"
NODE = shutil.which("node") or "node"
PATCH = """
import { patched } from "%s";
const cases = JSON.parse(await new Promise((done) => {
  let text = "";
  process.stdin.on("data", (part) => (text += part)).on("end", () => done(text));
}));
console.log(JSON.stringify(cases.map(([value, changes]) => patched(value, changes))));
"""


def test_the_pages_functions():
    tests = sorted(str(path) for path in (ROOT / "tests" / "console").glob("*.test.mjs"))
    assert len(tests) >= 2
    done = subprocess.run([NODE, "--test", *tests], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)[1]) > 20


@given(st.lists(st.tuples(VALUES, VALUES), min_size=150, max_size=150))
@settings(max_examples=1, deadline=None)
def test_the_page_applies_what_the_server_sends(pairs):
    cases = [(old, differences(old, new)) for old, new in pairs]
    script = PATCH % (STATIC / "lib" / "patch.js")
    command = [NODE, "--input-type=module", "--eval", script]
    done = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, check=True)
    assert [json.dumps(each, sort_keys=True) for each in json.loads(done.stdout)] == [
        json.dumps(new, sort_keys=True) for _, new in pairs
    ]


def test_the_vendored_libraries_are_those_that_were_verified():
    command = [sys.executable, str(ROOT / "scripts" / "renew_vendored.py"), "--check"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    packages = json.loads((STATIC / "vendor" / "vendored.json").read_text())
    for package in packages:
        assert package["integrity"].startswith("sha512-")
        assert [each for each in package["files"] if each["to"].endswith("LICENSE.txt")], package["name"]
    listed = {each["to"] for package in packages for each in package["files"]}
    assert {path.name for path in (STATIC / "vendor").glob("*.mjs")} <= listed


def test_the_files_are_small_enough_to_read():
    lengths = {path.name: len(path.read_text().splitlines()) for path in STATIC.rglob("*.js")}
    assert len(lengths) > 10
    assert {name: length for name, length in lengths.items() if length > 250} == {}
    assert sum(len(asset.content) for asset in load_assets().values()) < 400_000


def test_the_page_needs_no_inline_script_or_style():
    """The content security policy permits none."""
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", page) == []
    assert not [
        path for path in STATIC.rglob("*.js") if re.search(r"\beval\(|new Function|innerHTML", path.read_text())
    ]


def test_the_page_names_all_its_modules_so_that_none_is_found_late():
    served = load_assets()
    links = re.findall(r'rel="modulepreload" href="([^"]+)"', served["index.html",].content.decode())
    assert len(links) == len(set(links)) > 30
    modules = {parts for parts in served if parts[-1].endswith((".js", ".mjs"))}
    assert {tuple(link.split("/")) for link in links} == modules - {("lib", "theme.js"), ("lib", "types.js")}


def test_no_file_names_an_address_from_the_root_so_that_the_console_works_below_a_proxys_path():
    """JupyterLab shows it below /proxy/PORT/."""
    rooted = re.compile(
        r"""(?:href|src|action)=["']?/|(?:fetch|EventSource|import|assign|replace)\(["'`]/|from ["']/|url=/"""
    )
    files = [path for path in STATIC.rglob("*") if path.suffix in {".html", ".js", ".css", ".mjs"}]
    assert len(files) > 30
    assert rooted.search('<a href="/jobs">')
    assert rooted.search("fetch(`/api/jobs`)")
    assert [path.name for path in files if rooted.search(path.read_text())] == []


def test_something_is_painted_before_any_module_has_come():
    body = (STATIC / "index.html").read_text().partition("<body>")[2]
    assert "Opening the console" in body
    assert "<script" not in body


def test_every_module_that_is_imported_is_served():
    served = load_assets()
    for parts, asset in served.items():
        if parts[-1].endswith((".js", ".mjs")):
            for target in re.findall(r"from ?[\"'](\.[^\"']+)[\"']", asset.content.decode()):
                found = (STATIC.joinpath(*parts).parent / target).resolve().relative_to(STATIC)
                assert found.parts in served, f"{parts} imports {target}"
