"""Wrong calls of the command line, as people make them, on the shipped API: each message helps in one or two lines."""

import json
import random
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from api_fuzz import as_wsgi
from api_world import ApiWorld
from aws_clients import aws_session
from builders import a_request
from cli_terminal import Terminal
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.retry import Retry

P5 = "ml.p5.48xlarge"
_WORDS_OF_THE_API = re.compile(
    r"Traceback|Error: [A-Z][a-z]+[A-Z]\w*: |\bfield\b|Tags\[|pools\[|trainmaster:|/openapi"
    r"|(GET|PUT|POST|PATCH|DELETE) /"
    r"|Input should|Value error|codec|There is no member"
)
_PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/p1"
_MAX_LINES = 2
_MAX_LINE = 500

CALLS: tuple[tuple[str, int, str], ...] = (
    # commands: misspelt, of other tools, with the words of other tools
    ("sumbit job.json", 2, "Did you mean `trainmaster submit`?"),
    ("cancle job1", 2, "Did you mean `trainmaster cancel`?"),
    ("delete job1", 2, "Did you mean `trainmaster cancel`?"),
    ("kill job1", 2, "`trainmaster cancel`"),
    ("rm job1", 2, "`trainmaster cancel`"),
    ("scancel job1", 2, "`trainmaster cancel`"),
    ("stop-training-job job1", 2, "`trainmaster cancel`"),
    ("get jobs", 2, "`trainmaster ls`"),
    ("get job job1", 2, "`trainmaster show`"),
    ("get pools", 2, "`trainmaster pools`"),
    ("delete pool x", 2, "`trainmaster pools remove`"),
    ("list", 2, "`trainmaster ls`"),
    ("list-training-jobs", 2, "`trainmaster ls`"),
    ("squeue", 2, "`trainmaster ls`"),
    ("queue", 2, "`trainmaster ls`"),
    ("status", 2, "`trainmaster ls`"),
    ("status job1", 2, "`trainmaster show`"),
    ("describe job job1", 2, "`trainmaster show`"),
    ("info job1", 2, "`trainmaster show`"),
    ("run job.json", 2, "`trainmaster submit`"),
    ("create-training-job --cli-input-json job.json", 2, "`trainmaster submit`"),
    ("sbatch job.json", 2, "`trainmaster submit`"),
    ("launch job.json", 2, "`trainmaster submit`"),
    ("tail job1", 2, "`trainmaster logs`"),
    ("sinfo", 2, "`trainmaster pools`"),
    ("xyzzy", 2, "The commands are: submit, "),
    # options
    ("ls --stat running", 2, "ls has no option --stat. Did you mean --state?"),
    ("ls --status running", 2, "Did you mean --state?"),
    ("-o json ls", 2, "-o is an option of commands. Give it after the command"),
    ("export -o out.json", 2, "It writes to standard output: `trainmaster export > FILE`"),
    ("ls --qqqq", 2, "ls has no option --qqqq."),
    ("ls --mine=yes", 2, "--mine takes no value"),
    ("ls --share", 2, "--share needs a value"),
    ("show --name job1", 2, "Give the value without it: `trainmaster show NAME`"),
    ("cancel --all", 2, "`trainmaster ls` lists them"),
    ("submit job.json --prioirty 5", 2, "Did you mean --priority?"),
    ("submit job.json -p 5", 2, "Did you mean --priority?"),
    ("audit --from 1d", 2, "audit has no option --from. Did you mean --since?"),
    ("usage --since 1d", 2, "usage has no option --since. Did you mean --from?"),
    ("schedule --until 1d", 2, "schedule has no option --until. Did you mean --to?"),
    ("exec", 2, "is missing: use `trainmaster exec [OPTIONS] -- COMMAND [ARGUMENT...]`."),
    ("submit job.json --dry-run", 2, "Did you mean `trainmaster plan`?"),
    ("pools --histry", 2, "Did you mean --history?"),
    ("restore --adpot", 2, "restore has no option --adpot."),
    # arguments
    ("show", 2, "NAME is missing: use `trainmaster show NAME [OPTIONS]`"),
    ("show job1 job2", 2, "job2 is too much: use `trainmaster show NAME [OPTIONS]`"),
    ("ls job1", 2, "job1 is too much"),
    ("cancel", 2, "NAME is missing"),
    ("priority job1", 2, "VALUE is missing"),
    ("priority 5 job1", 2, "NAME and VALUE are swapped: use `trainmaster priority job1 5`"),
    ("priority -5 job1", 2, "NAME and VALUE are swapped: use `trainmaster priority job1 -5`"),
    ("priority job2 job1", 2, "VALUE is 'job1': it must be a whole number"),
    ("submit job.json --wiat", 2, "Did you mean --wait?"),
    ("priority job1 high", 2, "VALUE is 'high': it must be a whole number"),
    ("priority job1 99999999999", 2, "it must be at most 1,000,000"),
    ("submit", 2, "FILE is missing"),
    ("submit job.json job2.json", 2, "job2.json is too much"),
    # values
    ("ls --state runing", 2, "Did you mean running?"),
    ("ls --state RUNNING", 2, "Did you mean running?"),
    ("ls --state pending,runing", 2, "--state is 'runing'. Did you mean running?"),
    ("ls --state zzz", 2, "Use one of pending, "),
    ("ls --share nosuch", 3, "There is no share nosuch."),
    ("ls --pool ml.p5.48xlage", 3, f"Did you mean '{P5}'?"),
    ("ls --limit 0", 2, "--limit is '0': it must be at least 1"),
    ("ls --limit many", 2, "--limit is 'many': it must be a whole number"),
    ("ls --pool ''", 3, "There is no pool ''."),
    ("ls --since 25:00", 2, "--since: '25:00' is not a time: use "),
    ("ls --since 5x", 2, "--since: '5x' is not a time"),
    ("ls --since 20.11.2026", 2, "is not a time: use a time such as 2030-01-31"),
    ("logs job1 --since -5", 2, "--since: '-5' is not a time"),
    ("audit --since 2026-11-21 --until 2026-11-20", 2, "--since is not before --until."),
    ("wait job1 --timeout 5m", 2, "--timeout is '5m': it must be a number of seconds"),
    ("wait job1 --interval 0", 2, "--interval is '0': it must be at least 0.1"),
    ("ls --since yesterday", 2, "--since: 'yesterday' is not a time: use "),
    ("audit --until 2026-13-01", 2, "--until: '2026-13-01' is not a time"),
    ("audit --action cancl", 2, "Did you mean cancel?"),
    ("ls -o jsn", 2, "Did you mean json?"),
    ("logs job1 --tail -5", 2, "--tail is '-5': it must be at least 1"),
    ("logs job1 --attempt 3", 2, "job1 has no attempt 3"),
    ("wait job1 --timeout soon", 2, "--timeout is 'soon': it must be a number"),
    # files
    ("submit nofile.json", 2, "nofile.json cannot be read: No such file or directory."),
    ("submit dir", 2, "dir cannot be read: Is a directory."),
    ("submit empty.json", 2, "empty.json is empty."),
    ("submit binary.json", 2, "binary.json is not text in UTF-8."),
    ("submit broken.json", 2, "broken.json is not valid JSON"),
    ("submit list.json", 2, "list.json does not contain a JSON object."),
    ("submit train.py", 2, "create-training-job --generate-cli-skeleton"),
    ("submit pod.yaml", 2, "Supported kinds: HyperPodPyTorchJob"),
    ("submit bad.yaml", 2, "bad.yaml is not valid YAML"),
    ("import job.json", 2, "Use a file that `trainmaster export` has written."),
    # requests
    ("submit other.json", 2, "TrainingJobName is missing. Add it"),
    ("submit role.json", 2, "RoleArn is 'SageMakerRole', which is no ARN. Write it in full"),
    ("plan role.json", 2, "such as arn:aws:iam::"),
    ("submit type.json", 2, f"Did you mean '{P5}'?"),
    ("submit count.json", 2, "InstanceCount is '2', not a whole number."),
    ("submit name.json", 2, "Use letters, digits and hyphens inside, at most 63 characters."),
    ("submit job.json --priority high", 2, "--priority is 'high': it must be a whole number"),
    ("submit job.json --instances two", 2, "--instances is 'two': it must be a whole number"),
    ("submit job.json --instances -2", 2, "--instances is '-2': it must be at least 1"),
    ("submit job.json --option preemptible", 2, "use NAME=VALUE"),
    ("submit job.json --option preemptable=false", 2, "Did you mean --option preemptible?"),
    ("submit job.json --option preemptible=maybe", 2, "--option preemptible is 'maybe'. It must be 'true' or 'false'."),
    ("submit job.json --option deadline=tomorrow", 2, "--option deadline is 'tomorrow'. It must be a time"),
    ("submit job.json --resources gpus=8", 2, "Did you mean 'accelerators'?"),
    ("submit job.json --resources accelerators=eight", 2, "accelerators is 'eight'. It must be a whole number"),
    ("submit job.json --resources memory_gib=1TB", 2, "memory_gib is '1TB'. It must be GiB"),
    ("submit job.json --resources ''", 2, "'accelerators=8,vcpus=96,memory_gib=768', or omit the option"),
    ("submit job.json --instance-values 2,x", 2, "with commas between them, such as '2,4,8'"),
    ("submit job.json --min-instances 4 --max-instances 2", 2, "2, is less than min-instances, 4"),
    ("submit job.json --graceful-shutdown-timeout 5parsecs", 2, "such as '1800', or units such as '30m'"),
    ("submit job.json --option deadline=5h", 2, "It must be a time in ISO 8601 with its time zone"),
    ("submit job.json --option min-runtime=-5m", 2, "It must be a time of at most 28 days"),
    (
        "submit many.json",
        2,
        f"The job needs 100 x {P5}, and the pool's cap is 2. Request fewer instances, or raise the cap",
    ),
    ("submit nopool.json", 2, "There is no pool for ml.c4.xlarge. The pools are: "),
    (
        "submit plan.json",
        2,
        "The training plan 'p1' has no pool. Add a pool of kind training-plan (`trainmaster pools set`)",
    ),
    ("submit job.json --max-instances 1 --resize-by magic", 2, "--resize-by is 'magic'"),
    # jobs
    ("show job3", 3, "There is no job job3. Did you mean job1? See `trainmaster ls --all`."),
    ("hold jb2", 3, "Did you mean job2?"),
    ("show elsewhere", 3, "There is no job elsewhere. See `trainmaster ls --all`."),
    ("show ''", 2, "'' is not the name of a job."),
    ("cancel job1/x", 2, "'job1/x' is not the name of a job."),
    ("logs nojob", 3, "There is no job nojob."),
    ("cancel gone", 4, "gone is cancelled"),
    ("hold gone", 4, "gone is cancelled"),
    ("release job1", 4, "job1 is pending, not held."),
    ("purge job1", 4, "job1"),
    ("resized job1", 2, "--token is missing"),
    ("restore", 4, "Pause it first: `trainmaster pause`."),
    # pools
    (f"pools set {P5} 2", 2, f"'{P5}' is not POOL=CAP, such as {P5}=2"),
    (f"pools set {P5}=", 2, "is not POOL=CAP"),
    (f"pools set {P5}=two", 2, f"The cap of {P5} is 'two': it must be a whole number"),
    (f"pools set {P5}=-1", 2, f"The cap of {P5} is '-1'"),
    (f"pools set {P5}=1.5", 2, f"The cap of {P5} is '1.5'"),
    ("pools set pools.json", 2, "'pools.json' is not POOL=CAP"),
    ("pools remove ml.nosuch.large", 3, "There is no pool 'ml.nosuch.large'. `trainmaster pools` lists the pools."),
    (f"pools set {P5}=1 {P5}=2", 2, f"'{P5}' is specified twice"),
    ("pools set p5.48xlarge=2", 2, f"Did you mean {P5}?"),
    ("pools set ml.p5.48xlage=2", 2, f"'ml.p5.48xlage' is no known instance type. Did you mean {P5}?"),
    ("pools set mypool=2", 2, "set its instance type with --type"),
    ("pools set mypool=2 --type ml.p5.48xlage", 2, f"Did you mean {P5}?"),
    (f"pools set {P5}=1 --kind spto", 2, "Did you mean spot?"),
    (f"pools set {P5}=1 --plan notanarn", 2, f"{P5}: --plan: 'notanarn' is not the ARN of a training plan"),
    (f"pools set {P5}=1 --price cheap", 2, "--price is 'cheap': it must be a number"),
    (f"pools set {P5}=99999999999", 2, f"{P5}: cap should be less than or equal to 1000000."),
    ("pools add x=1", 2, "`trainmaster pools set`"),
    ("pools rm x", 2, "`trainmaster pools remove`"),
    ("pools list", 2, "Did you mean `trainmaster pools`?"),
    ("pools drain ml.p5.48xlage", 3, f"Did you mean '{P5}'? `trainmaster pools` lists the pools."),
    # settings
    ("settings set ordr=fifo", 2, "There is no setting ordr. Did you mean order?"),
    ("settings set order=lifo", 2, "order is lifo. It should be 'fifo', "),
    ("settings set order fifo", 2, "'order' is neither a single file nor NAME=VALUE"),
    ("settings set order", 2, "'order' is neither a single file nor NAME=VALUE"),
    ("settings set nofile.json", 2, "nofile.json cannot be read"),
    ("settings set broken.json", 2, "broken.json is not valid JSON"),
    (
        "settings set list.json",
        2,
        "list.json does not contain a JSON object. Use the format of `trainmaster settings --json`",
    ),
    ("settings set shares.json", 2, "shares should be an object."),
    ("settings set unit.json", 2, "preemption.minRuntimeSeconds should be a valid number."),
    ("settings set preemption.minRuntimeSeconds=5m", 2, "preemption.minRuntimeSeconds is 5m."),
    ("settings set shares=vision", 2, "Write shares.NAME=VALUE"),
    ("import empty.json", 2, "empty.json is empty. Use a file that `trainmaster export` has written."),
    ("import future.json", 2, "The export has version 9; this client reads versions up to 1."),
    ("settings set settings.json", 2, "There is no setting ordr. Did you mean order?"),
    ("settings set maxPreemptions=3", 2, "Did you mean preemption.maxPreemptions?"),
    ("settings set preemption.maxPreemptions=lots", 2, "preemption.maxPreemptions is lots."),
    (f"settings set shares.vision.nominl.{P5}=4", 2, "Did you mean nominal?"),
    ("settings set shares.vision.nominal.ml.p5.48xlage=4", 2, f"Did you mean '{P5}'?"),
    ("settings set shares.vision.nominal=4", 2, "Write shares.vision.nominal.NAME=VALUE"),
    ("settings set order.x=1", 2, "There is no setting order.x: order is backfill."),
    ("settings unset ordr", 2, "Did you mean order?"),
    ("settings get order", 2, "Did you mean `trainmaster settings`?"),
)


def _changed(path: str, value: Any) -> dict[str, Any]:
    """Return a request with another value at a path."""
    request = json.loads(json.dumps(a_request("new")))
    *above, last = path.split(".")
    for name in above:
        request = request[name]
    whole = request if not above else None
    request[last] = value
    return whole if whole is not None else json.loads(json.dumps(a_request("new") | {above[0]: request}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the calls name."""
    path = tmp_path_factory.mktemp("wrong")
    documents: dict[str, Any] = {
        "job.json": a_request("new"),
        "other.json": {},
        "list.json": [1],
        "role.json": _changed("RoleArn", "SageMakerRole"),
        "type.json": _changed("ResourceConfig.InstanceType", "ml.p5.48xlage"),
        "count.json": _changed("ResourceConfig.InstanceCount", "2"),
        "name.json": _changed("TrainingJobName", "my_job"),
        "settings.json": {"ordr": "fifo"},
        "shares.json": {"shares": [1]},
        "unit.json": {"preemption": {"minRuntimeSeconds": "5m"}},
        "future.json": {"trainmasterExport": 9, "jobs": []},
        "pools.json": {"pools": []},
        "many.json": _changed("ResourceConfig.InstanceCount", 100),
        "nopool.json": _changed("ResourceConfig.InstanceType", "ml.c4.xlarge"),
        "plan.json": _changed("ResourceConfig.TrainingPlanArn", _PLAN),
    }
    texts = {name: json.dumps(document) for name, document in documents.items()}
    texts |= {"empty.json": "", "broken.json": '{"a": 1,}', "train.py": "print(1)\n"}
    texts |= {"pod.yaml": "apiVersion: v1\nkind: Podd\n", "bad.yaml": "apiVersion: v1\nkind: [\n"}
    for name, text in texts.items():
        (path / name).write_text(text)
    (path / "binary.json").write_bytes(bytes(range(256)))
    (path / "dir").mkdir()
    return path


@pytest.fixture
def _in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def run() -> Iterator[Terminal]:
    """A terminal on the shipped API, which has two waiting jobs and a cancelled one."""
    world = ApiWorld()
    for name in ("job1", "job2", "gone"):
        world.submit(name)
    world.delete("/jobs/gone")
    session = aws_session(aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="secret", region_name="us-east-1")
    transport: Any = httpx.WSGITransport(app=as_wsgi(world))
    retry = Retry(max_attempts=2, sleep=lambda _: None, rng=random.Random(1))
    with ApiClient("https://api", session=session, transport=transport, retry=retry, environ={}) as api:
        yield Terminal(api)


def test_there_are_a_hundred_calls() -> None:
    assert len({line for line, _, _ in CALLS}) == len(CALLS) > 100


@pytest.mark.usefixtures("_in_folder")
@pytest.mark.parametrize(("line", "code", "told"), CALLS, ids=[line for line, _, _ in CALLS])
def test_a_wrong_call_is_told_in_one_or_two_lines(line: str, code: int, told: str, run: Terminal) -> None:
    result = run(*shlex.split(line))
    errors = [each for each in result.stderr.splitlines() if not each.startswith('{"')]  # the service's log
    assert result.exit_code == code, (result.stdout, errors)
    assert errors[0].startswith("Error: ")
    assert told in errors[0]
    assert len(errors) <= _MAX_LINES
    assert max(map(len, errors)) <= _MAX_LINE
    assert not _WORDS_OF_THE_API.search("\n".join(errors))
