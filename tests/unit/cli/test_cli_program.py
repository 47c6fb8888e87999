"""The program: global options, exit codes, start-up, the demo, the reference."""

import errno
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import TokenRetrievalError
from typer.main import get_command

from cli_terminal import Terminal
from doc_pages import describes_all_kinds
from fake_api import FakeApi, a_request, served, waits_for_capacity
from samples import sample
from trainmaster import __version__
from trainmaster.cli.commands import PLACES
from trainmaster.cli.common.context import ApiTarget, connect
from trainmaster.cli.common.exit_codes import ExitCode, as_api_error, error_line, exit_code_of, file_error_line
from trainmaster.cli.program import build, globals_first
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.config import Address
from trainmaster.client.api.errors import ApiError, Conflict, Forbidden, NotConfigured, NotFound, Refused, Unreachable
from trainmaster.client.logs import LogReader

ROOT = Path(__file__).parents[3]
OURS = os.environ | {"PYTHONPATH": str(ROOT / "src")}
COMMANDS = (
    "submit",
    "ls",
    "show",
    "why",
    "wait",
    "cancel",
    "hold",
    "release",
    "priority",
    "pools",
    "settings",
    "plan",
    "replay",
    "demo",
)


# -- help, version, reference


def test_every_command_has_help(run: Terminal) -> None:
    listed = run("--help").stdout
    for command in COMMANDS:
        assert f"\n  {command} " in listed
        assert run(command, "--help").stdout.startswith(f"Usage: trainmaster {command} ")


def test_the_help_documents_the_exit_codes(run: Terminal) -> None:
    text = run("--help").stdout
    assert [code for code in ExitCode if f"\n  {code:>5}  " not in text] == [ExitCode.BROKEN_PIPE]


def test_the_help_of_a_group_has_the_whole_first_line_of_each_command(run: Terminal) -> None:
    for group in ("pools", "settings", "sweep"):
        assert "..." not in run(group, "--help").stdout.partition("Commands:")[2]
    told = " ".join(run("pools", "--help").stdout.split())
    assert "set Set the caps and other properties of pools; other pools stay as they are." in told


def test_each_option_with_a_value_names_it() -> None:
    """The reference and the help would else have `--kind` without a value."""
    root: Any = get_command(build())
    commands = [root, *(below for each in root.commands.values() for below in [each, *subcommands(each)])]
    unnamed = [
        f"{command.name} {option.opts[-1]}"
        for command in commands
        for option in command.params
        if option.param_type_name == "option" and not option.is_flag and not option.metavar and option.nargs == 1
    ]
    assert unnamed == []


def subcommands(command: Any) -> list[Any]:
    return [*getattr(command, "commands", {}).values()]


def test_the_version(run: Terminal) -> None:
    assert run("--version").stdout == f"trainmaster {__version__}\n"


@describes_all_kinds
def test_the_reference_is_what_the_help_texts_say() -> None:
    script = ROOT / "scripts" / "cli_reference.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_reference_has_every_command_and_every_exit_code() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()
    for command in (
        *COMMANDS,
        "pools set",
        "pools remove",
        "settings set",
        "settings unset",
        "settings replay",
        "settings schema",
    ):
        assert f"\n## trainmaster {command}\n" in page
    assert [code for code in ExitCode if f"\n| {code} | " not in page] == [ExitCode.BROKEN_PIPE]


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of commands on a queue of this machine, in a folder with a request."""
    folder = tmp_path_factory.mktemp("requests")
    (folder / "request.json").write_text(json.dumps(a_request("job2")))
    queue = FakeApi()
    queue.add("job1", reason=waits_for_capacity())
    with served(queue) as url:
        yield os.environ | {
            "TRAINMASTER_API_URL": url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "AK",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "PWD": str(folder),
        }


def imported(*arguments: str, environ: Mapping[str, str] = os.environ) -> tuple[set[str], set[str]]:
    """Return the packages that a command imports, and the modules of trainmaster's own."""
    code = (
        "import os, sys\nos.chdir(os.environ.get('PWD', '.'))\nfrom trainmaster.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules)"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    names = done.stdout.splitlines()[-1].split()
    own = {name.removeprefix("trainmaster.") for name in names if name.startswith("trainmaster.")}
    return {name.partition(".")[0] for name in names}, own


INTERRUPTED_AT_AN_IMPORT = """
import signal, sys
from importlib.abc import MetaPathFinder

class CtrlC(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[-1]:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, CtrlC())
from trainmaster.cli.main import main
sys.argv[1:] = ["replay", "trace.csv", sys.argv[-1]]
main()
"""


@pytest.mark.parametrize("module", ["trainmaster.domain", "typer", "trainmaster.cli.program", "trainmaster.cli.replay"])
def test_ctrl_c_while_modules_are_imported_ends_it_with_one_line(module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED_AT_AN_IMPORT, module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (ExitCode.INTERRUPTED, "Interrupted.\n")


def test_hardly_anything_is_imported_before_ctrl_c_is_handled() -> None:
    code = "import sys; before = {*sys.modules}; import trainmaster.cli.main; print(*{*sys.modules} - before)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=OURS)
    assert {*done.stdout.split()} == {"__future__", "trainmaster", "trainmaster.cli", "trainmaster.cli.main"}


@pytest.mark.parametrize("arguments", [["--help"], ["submit", "--help"], ["--version"], ["nonsense"]])
def test_nothing_heavy_is_imported_before_a_request_is_made(arguments: list[str]) -> None:
    packages, _ = imported(*arguments)
    assert packages & {"boto3", "botocore", "s3transfer", "sagemaker", "httpx", "rich", "tabulate"} == set()


def test_the_help_imports_no_command_and_nothing_of_the_queue() -> None:
    packages, own = imported("--help")
    assert {name for name in own if name.startswith(("cli.jobs", "cli.queue", "images", "client.hyperpod"))} == set()
    assert {name for name in own if name.startswith("domain.")} <= {f"domain.{name}" for name in _LIGHT}
    assert "yaml" not in packages


CALLS = {
    "ls": {"cli.jobs.ls"},
    "why job1": {"cli.jobs.why"},
    "show job1": {"cli.jobs.show"},
    "submit request.json": {"cli.jobs.submit"},
    "pools": {"cli.queue.pools"},
}


@pytest.mark.parametrize("line", sample(CALLS, 2))
def test_a_call_signs_without_boto3_and_imports_its_own_command_alone(line: str, configured: dict[str, str]) -> None:
    packages, own = imported(*line.split(), environ=configured)
    assert "botocore" in packages
    assert packages & {"boto3", "s3transfer", "sagemaker", "yaml"} == set()
    commands = {f"cli.{place.module}" for place in PLACES.values()}
    assert own & commands == CALLS[line]
    heavy = ("planner", "service", "adapters", "handlers", "bootstrap", "local", "worker", "domain.plan")
    assert {name for name in own if name.startswith(heavy)} == set()


@pytest.mark.parametrize("line", ["ls", "why job1"])
def test_a_call_that_only_reads_imports_no_code_for_requests(line: str, configured: dict[str, str]) -> None:
    heavy = ("images", "client.hyperpod", "client.sdk", "domain.jobs.job", "domain.requests", "domain.policy")
    assert {name for name in imported(*line.split(), environ=configured)[1] if name.startswith(heavy)} == set()


_LIGHT = ("compat", "release", "text", "jobs", "jobs.infeasible")


def test_the_help_has_the_first_line_of_each_command() -> None:
    commands = get_command(build()).commands  # type: ignore[attr-defined]
    first = {name: " ".join(commands[name].help.partition("\n\n")[0].split()) for name in PLACES}
    assert {name: place.summary for name, place in PLACES.items()} == first


# -- global options


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        ("ls --region r --wide", "--region r ls --wide"),
        ("ls --api-url=u --profile p", "--api-url=u --profile p ls"),
        ("--stack s ls --api-id i", "--stack s --api-id i ls"),
        ("submit - --option a=b --profile demo", "--profile demo submit - --option a=b"),
        ("priority job1 -5 --region r", "--region r priority job1 -5"),
        ("priority job1 -- -5 --region", "priority job1 -- -5 --region"),
        ("demo --region r", "demo --region r"),
        ("--region r demo --stack s", "--region r demo --stack s"),
        ("show demo --region r", "--region r show demo"),
        ("ls --region", "ls --region"),
        ("why a --utc --region r", "--utc --region r why a"),
        ("", ""),
    ],
)
def test_global_options_may_stand_behind_the_command(given: str, ordered: str) -> None:
    assert globals_first(given.split()) == ordered.split()


@pytest.fixture
def no_aws_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)


@pytest.mark.usefixtures("no_aws_configuration")
def test_the_options_lead_to_the_api_as_the_callers_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    config.write_text("[profile team]\nregion = eu-west-1\naws_access_key_id = AK\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))

    api = connect(ApiTarget(api_url="https://host/prod", api_id="a1", profile="team"), {})
    assert api.address == Address("https://host/prod", "a1")
    assert api.session.region_name == "eu-west-1"
    assert connect(ApiTarget(profile="team", region="us-east-2"), {}).session.region_name == "us-east-2"


@pytest.mark.usefixtures("no_aws_configuration")
def test_a_profile_that_does_not_exist_is_told() -> None:
    with pytest.raises(NotConfigured, match=r"nope.*aws configure list-profiles"):
        connect(ApiTarget(profile="nope"), {})


@pytest.mark.usefixtures("no_aws_configuration")
def test_the_environment_tells_the_api_unless_a_stack_is_named() -> None:
    environ = {"TRAINMASTER_API_URL": "https://host/prod", "TRAINMASTER_API_ID": "a1", "TRAINMASTER_STACK": "other"}
    assert connect(ApiTarget(), environ).address == Address("https://host/prod", "a1")
    with pytest.raises(NotConfigured, match="from stack 'mine'"):
        _ = connect(ApiTarget(stack="mine"), environ).address


# -- errors


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (Refused, 2),
        (NotConfigured, 2),
        (NotFound, 3),
        (Conflict, 4),
        (Forbidden, 5),
        (Unreachable, 6),
        (ApiError, 6),
    ],
)
def test_each_kind_of_error_has_its_code(kind: type[ApiError], code: int) -> None:
    assert exit_code_of(kind("no")) == code


def test_an_error_is_one_line() -> None:
    error = Refused("It is\n  wrong.", type="InvalidRequest", field="Tags[0].Key", hint="Mend\nit.")
    assert error_line(error) == "It is wrong. Mend it."
    assert error_line(Refused("It is wrong.")) == "It is wrong."


def test_expired_credentials_are_no_bug() -> None:
    known = as_api_error(TokenRetrievalError(provider="sso", error_msg="Token has expired and refresh failed"))
    assert known is not None
    assert exit_code_of(known) == ExitCode.NOT_ALLOWED
    assert "Token has expired" in error_line(known)
    assert "Log in again" in error_line(known)


@pytest.mark.usefixtures("no_aws_configuration")
def test_the_hint_to_log_in_names_the_profile_of_the_option(
    world: FakeApi, run: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text("[profile team]\nregion = eu-west-1\nsso_session = corp\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    world.add("job1", "running")

    def expired(api: ApiClient, since: int | None) -> LogReader:
        raise TokenRetrievalError(provider="sso", error_msg="gone")

    run.log_reader = expired
    result = run("logs", "job1", "--profile", "team")
    assert (result.exit_code, result.stderr.count("\n")) == (5, 1)
    assert "Log in again: `aws sso login --profile team`." in result.stderr


def test_a_bug_is_not_taken_for_anything_else(world: FakeApi, run: Terminal) -> None:
    world.jobs["job1"] = {"jobName": "job1"}
    with pytest.raises(KeyError):
        run("show", "job1")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
@pytest.mark.parametrize("call", ["ls", "ls --json", "submit -"])
def test_a_closed_standard_stream_is_the_null_device(call: str, closed: str, configured: dict[str, str]) -> None:
    command = f"{shlex.quote(sys.executable)} -m trainmaster {call} {closed}"
    done = subprocess.run(
        command,
        shell=True,
        env=OURS | configured,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (2 if call == "submit -" else 0)
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("call", ["ls", "ls --json", "--help"])
def test_a_full_disk_is_told_in_one_line(call: str, configured: dict[str, str]) -> None:
    command = [sys.executable, "-m", "trainmaster", *call.split()]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, env=OURS | configured, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == ExitCode.NOT_WRITTEN
    assert done.stderr == "Error: The output cannot be written: No space left on device.\n"


def test_a_file_that_cannot_be_written_is_told_with_its_name(configured: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "absent" / "queue.json"
    command = [sys.executable, "-m", "trainmaster", "export", "--output", str(path)]
    done = subprocess.run(command, env=OURS | configured, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.NOT_WRITTEN
    assert done.stderr == f"Error: {path} cannot be written: No such file or directory.\n"


def test_an_error_that_names_no_file_and_no_device_is_none_of_a_file() -> None:
    assert file_error_line(OSError(errno.EBADF, "Bad file descriptor")) is None


# -- the demo


def test_demo_becomes_the_demo_with_all_further_arguments(run: Terminal) -> None:
    assert run("demo", "--seconds", "3", "-q", "--region", "x", "--", "--help").exit_code == 0
    assert run.started == [
        [sys.executable, "-m", "trainmaster.local.demo", "--seconds", "3", "-q", "--region", "x", "--help"]
    ]


def test_demo_asks_for_a_python_that_it_runs_on(run: Terminal) -> None:
    run.missing = {"tomllib"}
    result = run("demo")
    assert (result.exit_code, run.started) == (2, [])
    assert result.stderr.startswith("Error: The demo needs Python 3.11 or newer. ")


def test_demo_says_how_to_install_what_is_missing(run: Terminal) -> None:
    run.missing = {"moto"}
    result = run("demo")
    assert (result.exit_code, run.started) == (2, [])
    assert result.stderr == (
        "Error: The demo needs packages that are not installed (moto). "
        "Run `make demo` in a checkout of the project, which installs them.\n"
    )
