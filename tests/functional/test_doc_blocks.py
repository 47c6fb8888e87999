"""Every block of code in the documentation is run or checked here, run by a test that it names, or says why not.

`trainmaster` runs in this process against the shipped handlers, and Python against the same over HTTP. JSON is given to
the route that takes it. Of commands that are not run, the names are checked: targets, parameters, operations, options,
packages.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore import xform_name
from cfnlint.decode import cfn_yaml
from typer.main import get_command

from api_fuzz import as_wsgi
from api_world import ApiWorld
from aws_clients import aws_session
from builders import P5, a_request
from cli_terminal import Terminal
from doc_blocks import ROOT, blocks, commands, fences
from elastic_world import ElasticWorld
from fake_api import STAGE, served
from trainmaster.cli.program import build
from trainmaster.client.api.client import ApiClient
from trainmaster.domain.access.request_policy import RequestPolicy
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.events.notification import ATTRIBUTES
from trainmaster.domain.events.types import DETAIL_TYPES, EventType
from trainmaster.domain.jobs.job import JobState
from trainmaster.service.resizing.contract import resize_request

BLOCKS = [block for block in blocks() if not block.is_output]
TESTED = {"sh", "json", "python", "toml"}
"""Languages of blocks that are tested here."""
REQUESTS = ("job", "prepare", "train", "evaluate", "trial-001")
"""Names of the requests that pages submit from files, beside the pages' own documents."""
WAITING = {
    "docs/how-to/administer.md": ("llm-pretrain",),
    "docs/how-to/troubleshooting.md": ("llm-pretrain",),
    "README.md": ("llm-pretrain",),
    "docs/how-to/let-the-queue-make-pools.md": ("tune-7",),
    "docs/how-to/when-and-after-what.md": ("baseline",),
}
"""Jobs that a page takes to be in the queue."""
PREPARED = {
    "docs/how-to/elastic-jobs.md": ("submit tune-8.json --max-instances 9 --instance-step 3",),
    "docs/how-to/capacity-kinds.md": (
        "pools set spring=4 --type ml.p5.48xlarge",
        "pools set p5-spot=4 --type ml.p5.48xlarge --kind spot",
    ),
}
"""Commands that the reader of a page has run before each block."""
MANIFEST = "website/static/samples/pytorch_job_gpu.yaml"
"""A public manifest, for pages that submit one."""
OPENAPI = ROOT / "docs" / "reference" / "openapi.json"


def of(language: str, mark: str = "") -> list[Any]:
    return [pytest.param(each, id=str(each)) for each in BLOCKS if (each.mark, each.language) == (mark, language)]


def test_every_block_has_a_language_that_is_tested_or_a_mark():
    assert [str(block) for block in BLOCKS if not block.mark and block.language not in TESTED] == []


def test_every_fence_belongs_to_a_block():
    assert fences() == 2 * len(list(blocks()))


def test_every_mark_has_a_reason_or_names_a_test_that_reads_the_page():
    for block in BLOCKS:
        if block.mark == "run by":
            assert any(Path(block.page).name in path.read_text() for path in readers(ROOT / block.reason)), block
        elif block.mark:
            assert len(block.reason) > len("it needs AWS"), block


def readers(test: Path) -> list[Path]:
    """Return a test and the helpers that it imports, any of which may name the page."""
    modules = re.findall(r"^(?:from|import) (\w+)", test.read_text(), re.MULTILINE)
    return [test, *(path for name in modules for path in (ROOT / "tests").rglob(f"{name}.py"))]


@pytest.fixture
def world() -> ApiWorld:
    pools = {P5: Pool(P5, 16), "ml.g5.2xlarge": Pool("ml.g5.2xlarge", 8)}
    return ApiWorld(pools=pools, settings={"allowed_roles": ("*",)})


# -- commands


@pytest.fixture
def terminal(world: ApiWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.chdir(tmp_path)
    session = aws_session(aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="secret", region_name="us-east-1")
    transport: Any = httpx.WSGITransport(app=as_wsgi(world))
    with ApiClient("https://api", session=session, transport=transport, environ={}) as api:
        yield Terminal(api)


@pytest.mark.parametrize("block", of("sh"))
def test_the_commands_of_a_block_succeed(block, terminal, world, tmp_path):
    for name in WAITING.get(block.page, ()):
        world.submit(name)
    write_files(block.page, tmp_path)
    for command in PREPARED.get(block.page, ()):
        assert terminal(*command.split()).exit_code == 0, command
    terminal.meanwhile = [lambda: cancel_all(world)] * 100
    for program, *arguments in commands(block):
        assert program == "trainmaster", "run it elsewhere, or say why it is not run"
        done = terminal(*arguments)
        assert done.exit_code == 0, f"{arguments}: {done.output}"
    for program in terminal.started:
        subprocess.run(program, cwd=tmp_path, capture_output=True, check=True, timeout=120)


def cancel_all(world: ApiWorld) -> None:
    for job in world.get("/queue").body["jobs"]:
        assert world.delete(f"/jobs/{job['jobName']}").status == 200


def write_files(page: str, folder: Path) -> None:
    """Write the files that the page's commands read: requests, a manifest, and the page's own documents by name."""
    for name in REQUESTS:
        (folder / f"{name}.json").write_text(json.dumps(a_request(name)))
    with gzip.open(folder / "trace.csv.gz", "wt") as trace:
        trace.write("submit_time_s,duration_s,num_gpus,vc\n0,600,64,vision\n60,600,64,vision\n90,60,16,speech\n")
    corpus = json.loads((ROOT / "tests/fixtures/manifests/corpus.json").read_text())
    (manifest,) = [each["documents"] for each in corpus if each["path"] == MANIFEST]
    (folder / "llama.yaml").write_text("\n---\n".join(map(json.dumps, manifest)))
    for name in ("tune-7", "tune-8"):
        (folder / f"{name}.json").write_text(json.dumps(a_request(name, instance_type="ml.g5.2xlarge", count=3)))
    for block in BLOCKS:
        if block.page == page and block.language == "json" and not block.mark:
            value = json.loads(block.text)
            name = "settings" if "shares" in value else value.get("TrainingJobName", "base")
            (folder / f"{name}.json").write_text(block.text)


# -- commands that are not run


@pytest.mark.parametrize("block", of("sh", "not run"))
def test_the_names_of_commands_that_are_not_run_exist(block):
    check_aws(block.text)
    checks = {"make": check_make, "python": check_python, "pip": check_pip, "sam": check_sam, "cd": check_folder}
    for program, *arguments in commands(block):
        if check := checks.get(Path(program).name):
            check(arguments)


def check_make(arguments: list[str]) -> None:
    target, *options = arguments
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found, f"there is no target {target}"
    for option in options:
        module = re.search(r"-m ([\w.]+)", found[1])
        assert module, target
        parse(module[1], option.removeprefix("ARGS=").split())


PASSED_ON = {"trainmaster.local.example_queue": "console"}
"""Programs that take the options of a command."""


def check_python(arguments: list[str]) -> None:
    if arguments[0] == "-m":
        parse(*arguments[1:2], arguments[2:])
    else:
        assert (ROOT / arguments[0]).is_file(), arguments[0]


def parse(module: str, options: list[str]) -> None:
    """Parse the options of a program of ours; argparse exits if it does not know one, and click raises."""
    if module in PASSED_ON:
        command = get_command(build()).commands[PASSED_ON[module]]
        command.make_context(command.name, options).close()
        return
    program = import_module(module if (ROOT / f"{module.replace('.', '/')}.py").exists() else f"{module}.__main__")
    parse_arguments = program._options if hasattr(program, "_options") else program._parser().parse_args
    parse_arguments(options)


def check_pip(arguments: list[str]) -> None:
    """Require that what is installed is a distribution of this repository with such extras, or SAM."""
    files = [ROOT / "pyproject.toml", *ROOT.glob("packaging/*/pyproject.toml")]
    projects = [tomllib.loads(path.read_text())["project"] for path in files]
    extras = {each["name"]: each.get("optional-dependencies", {}) for each in projects} | {"aws-sam-cli": {}}
    for argument in set(arguments) - {"install", "--upgrade"}:
        found = re.fullmatch(r"([\w-]+)(?:\[(\w+)\])?", argument)
        assert found, argument
        assert found[1] in extras, argument
        assert found[2] is None or found[2] in extras[found[1]], argument


def check_sam(arguments: list[str]) -> None:
    """Require that the parameters of a deployment are in a template."""
    parameters, following = section_of_templates("Parameters"), arguments[1:]
    while following and following[0].startswith("-"):
        option, *following = following
        values = [each for each in following if not each.startswith("-")]
        if option == "--parameter-overrides":
            assert {each.partition("=")[0] for each in values} <= parameters
        else:
            assert option in {"--guided", "--tags"}
        following = following[len(values) :]


def check_folder(arguments: list[str]) -> None:
    assert (ROOT / arguments[0]).is_dir()


def check_aws(text: str) -> None:
    """Require that operations, options and outputs of stacks exist."""
    session = aws_session(aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="secret", region_name="us-east-1")
    lines = text.replace("\\\n", " ")
    for service, operation, rest in re.findall(r"\baws ([a-z]+) ([a-z-]+)((?:(?!\baws ).)*)", lines):
        client = session.client(service)
        if operation == "wait":
            assert rest.split()[0].replace("-", "_") in client.waiter_names
            continue
        shape = client.meta.service_model.operation_model(
            client.meta.method_to_api_mapping[operation.replace("-", "_")]
        )
        known = {xform_name(member, "-") for member in shape.input_shape.members} | {
            "query",
            "output",
            "profile",
            "cli-input-json",
            "zip-file",
        }
        assert {name.removeprefix("no-") for name in re.findall(r"(?<!\w)--([a-z-]+)", rest)} <= known
    assert set(re.findall("OutputKey=='(\\w+)'", text)) <= section_of_templates("Outputs")


@lru_cache(maxsize=2)
def section_of_templates(name: str) -> set[str]:
    """Return the names in a section of all templates."""
    paths = [ROOT / "template.yaml", *ROOT.glob("*/template.yaml")]
    return {key for path in paths for key in cfn_yaml.load(str(path))[name]}


# -- Python


@pytest.mark.parametrize("block", of("python"))
def test_python_runs(block, world, monkeypatch):
    with served(as_wsgi(world)) as url:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "AKIDEXAMPLE")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("TRAINMASTER_API_URL", url.removesuffix(STAGE))
        documents = [json.loads(each.text) for each in BLOCKS if each.page == block.page and each.language == "json"]
        request = next(iter(documents), a_request("job1"))
        exec(compile(block.text, str(block), "exec"), {"__name__": "example", "request": request})


# -- documents


@pytest.mark.parametrize("block", of("toml"))
def test_parameters_in_sams_file_are_those_of_a_template(block):
    value = tomllib.loads(block.text)
    assert value.keys() == {"parameter_overrides"}
    assert {each.partition("=")[0] for each in value["parameter_overrides"].split()} <= section_of_templates(
        "Parameters"
    )


@pytest.mark.parametrize("block", of("json"))
def test_a_document_is_accepted(block, world):
    document(world, json.loads(block.text))


def document(  # noqa: C901 -- a case for each kind of document
    world: ApiWorld, value: dict[str, Any]
) -> None:
    """Give a document to what takes it, which its members tell."""
    schemas = json.loads(OPENAPI.read_text())["components"]["schemas"]
    if "TrainingJobName" in value:
        resources = {"Key": "trainmaster:resources", "Value": "accelerators=8"}
        assert world.post("/plan", value | {"Tags": [resources]}).status == 200
    elif "jobName" in value:
        assert value.keys() == schemas["Job"]["properties"].keys()
    elif "error" in value:
        assert value["error"].keys() == schemas["ErrorDetail"]["properties"].keys()
    elif "pools" in value:
        assert world.put("/pools", value).status == 200
    elif "Effect" in value:
        check_statement(value)
    elif value.keys() <= {"subnets", "images", "buckets", "requiredTags"}:
        RequestPolicy.parse(value)
    elif "detail-type" in value:
        # test_event_pages.py holds the members against real events.
        assert value["detail-type"] == DETAIL_TYPES[EventType(value["detail"]["type"])]
    elif value.keys() <= ATTRIBUTES.keys():
        assert all(isinstance(each, list) for each in value.values()), "a filter policy of SNS"
    elif "answerTo" in value:
        check_resize_request(value)
    elif value.keys() & {"RoleArn", "AlgorithmSpecification"}:
        assert world.post("/plan", a_request("job1") | value).status == 200
    else:
        reply = world.put("/settings", {key: each for key, each in value.items() if key != "version"})
        assert reply.status == 200, reply.body


def check_resize_request(value: dict[str, Any]) -> None:
    """Require the members that the queue sends to a job's own function."""
    world = ElasticWorld()
    world.resizer.silent = True
    world.elastic("elastic", "custom")
    world.decreed["elastic"] = 2
    world.run_until(lambda: world.job("elastic").state is JobState.RESIZING)
    assert value.keys() == resize_request(world.job("elastic")).keys()


def check_statement(statement: dict[str, Any]) -> None:
    assert statement.keys() <= {"Effect", "Principal", "Action", "Resource", "Condition"}
    actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
    for action in actions:
        service, name = action.split(":")
        operations = boto3.client(service, region_name="us-east-1").meta.service_model.operation_names
        assert name in {*operations, "SetSourceIdentity"}
