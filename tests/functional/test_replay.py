"""The shipped queue over traces: against the reference policies job by job, and as the program that people run."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from samples import examples
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.policy.settings import Order, Policy, Share
from trainmaster.domain.records import Records
from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.replay.program import _draw, main
from trainmaster.local.replay.queue import Replay, ReplaySettings
from trainmaster.local.replay.reference_policies import run_reference
from trainmaster.local.replay.report.results import usage_over_time
from trainmaster.local.replay.runs import POLICIES, Run
from trainmaster.local.replay.trace.reading import read_trace
from trainmaster.local.replay.trace.requests import POOL, index_of
from trainmaster.local.replay.trace.trace import TraceJob
from trainmaster.local.replay.virtual_queue import ReplayFailed

TRACES = Path(__file__).parents[2] / "benchmarks" / "traces"
CAP = 8


def job(submit, duration, gpus, name=""):
    return TraceJob(name, submit, duration, gpus)


def replayed(jobs, order=Order.FIFO, cap=CAP, **terms):
    return Replay(jobs, ReplaySettings(cap=cap, policy=Policy(order=order), **terms)).run()


@st.composite
def traces(draw, shortest=0):
    """Jobs in the order of submission; of one second in that of the baselines."""
    times, lengths = st.integers(0, 300), st.integers(shortest, 200)
    found = draw(st.lists(st.tuples(times, lengths, st.integers(1, CAP)), min_size=1, max_size=25))
    return [job(*each) for each in sorted(found)]


@settings(deadline=None)
@given(jobs=traces())
def test_the_shipped_fifo_is_the_baseline_job_by_job(jobs):
    assert replayed(jobs) == run_reference("baseline-fifo", jobs, CAP)


class Knowing(History):
    """A history that knows how long every job will run."""

    def __init__(self, jobs):
        super().__init__()
        object.__setattr__(self, "jobs", jobs)

    __slots__ = ("jobs",)

    def run_time(self, job, elapsed, quantile):
        return self.jobs[index_of(job.name)].duration

    def startup(self, job):
        return 0.0


ENDS_TOGETHER = ((1, 1), (16, 1), (17, 1), (17, 7), (18, 1))
"""Seconds and GPUs: the last may not start in the gap that the first leaves, if the fourth is not to wait for it."""
PASSED_BY_EASY = ((1, 2), (1, 7), (1, 8), (3, 1))
"""The last delays the third, for which EASY reserves nothing."""


def knowing(jobs):
    """Makes stores whose passes know how long every job will run.

    Jobs of one kind are expected to run equally long, so each needs its own limit to be a kind of its own.
    """

    class Store(MemoryStore):
        def begin_pass(self):
            return replace(super().begin_pass(), records=Records(history=Knowing(jobs)))

    return Store


@settings(deadline=None)
@given(jobs=traces(shortest=1))
@example(jobs=[TraceJob("", 0, seconds, gpus, "default", seconds) for seconds, gpus in ENDS_TOGETHER])
@example(jobs=[TraceJob("", 0, seconds, gpus) for seconds, gpus in PASSED_BY_EASY])
def test_the_shipped_backfill_with_one_reservation_and_exact_estimates_is_easy_job_by_job(jobs):
    jobs = [replace(each, max_runtime=each.duration) for each in jobs]
    terms = ReplaySettings(cap=CAP, policy=Policy(order=Order.BACKFILL, reservations=1))
    results = Replay(jobs, terms, make_store=knowing(jobs)).run()
    assert results == run_reference("baseline-easy", jobs, CAP)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "share"), [("philly_2017", "ee9e8c"), ("itp_2021", "cluster02")])
def test_so_it_is_on_the_real_traces(name, share):
    jobs = [each for each in read_trace(str(TRACES / f"{name}.csv.gz")) if each.share == share]
    jobs.sort(key=lambda each: (each.submit, each.duration, each.gpus))
    assert replayed(jobs, cap=128) == run_reference("baseline-fifo", jobs, 128)


@st.composite
def days(draw):
    """Jobs of minutes to days in two shares, so that every order has a reason to preempt."""
    minutes = st.integers(0, 4000), st.sampled_from([5, 60, 600, 4000]), st.integers(1, CAP), st.sampled_from("ab")
    found = draw(st.lists(st.tuples(*minutes), min_size=1, max_size=15))
    return [TraceJob("", 60 * at, 60 * length, gpus, share) for at, length, gpus, share in sorted(found)]


@pytest.mark.parametrize("order", Order)
@examples(40, deadline=None)
@given(jobs=days())
def test_every_order_does_all_work_within_the_cap_and_pays_for_each_restart(order, jobs):
    results = replayed(jobs, order, restart_cost=100)
    for each in results:
        held = sum(end - start for start, end in each.spans)
        assert held == pytest.approx(each.job.duration + each.lost)
        assert each.lost <= 100 * each.preemptions
        assert each.spans[0][0] >= each.job.submit
    assert max(usage.used for usage in usage_over_time(results)) <= CAP
    assert min(usage.waiting for usage in usage_over_time(results)) >= 0


def test_gittins_preempts_and_the_restart_is_lost():
    long, short = job(0, 40 * 3600, CAP), job(20 * 3600, 600, CAP)
    first, second = replayed([long, short], Order.GITTINS)
    assert second.finish < first.finish
    assert (first.preemptions, first.lost) == (1, 300)
    assert first.wait == pytest.approx(600 + 300)


def test_a_job_runs_longer_than_sagemaker_would_let_it():
    longest = 40 * 86_400
    (results,) = replayed([job(0, longest, 1)])
    assert results.finish == longest


def test_times_between_the_seconds_are_kept():
    first, second = replayed([job(0.25, 1.5, CAP), job(1.0, 1.0, CAP)])
    assert first.spans == ((0.25, 1.75),)
    assert second.spans == ((1.75, 2.75),)


def test_all_that_happens_in_one_instant_is_one_pass():
    replay = Replay(
        [job(10, 5, 1), job(10, 5, 1), job(15, 5, 1)], ReplaySettings(cap=CAP, policy=Policy(order=Order.FIFO))
    )
    replay.run()
    assert replay.passes == 3  # 10 s: two arrive; 15 s: two end and one arrives; 20 s: one ends


class EveryPass(Replay):
    """A replay that skips no pass."""

    def may_act(self):
        return True


@pytest.mark.parametrize("order", [order for order in Order if not order.preempts_equals])
@examples(20, deadline=None)
@given(jobs=days())
def test_passes_that_are_skipped_would_have_changed_nothing(order, jobs):
    terms = ReplaySettings(cap=CAP, policy=Policy(order=order))
    assert Replay(jobs, terms).run() == EveryPass(jobs, terms).run()


@examples(20, deadline=None)
@example(jobs=[job(0, 200, CAP), job(10, 5, 1)])
@given(jobs=days())
def test_no_pass_is_skipped_where_shares_take_back_what_they_lent(jobs):
    shares = {name: Share(name=name, nominal={POOL: CAP // 2}) for name in ("a", "b")}
    terms = ReplaySettings(cap=CAP, policy=Policy(shares=shares))
    jobs = [replace(each, share="ab"[number % 2]) for number, each in enumerate(jobs)]
    assert Replay(jobs, terms).run() == EveryPass(jobs, terms).run()


def test_no_pass_is_made_for_a_job_that_arrives_while_the_pool_is_full():
    jobs, terms = [job(0, 100, CAP), job(10, 5, 1), job(20, 5, 1)], ReplaySettings(cap=CAP, policy=Policy())
    made = {}
    for kind in (Replay, EveryPass):
        replay = kind(jobs, terms)
        replay.run()
        made[kind] = replay.passes
    assert made[Replay] == made[EveryPass] - 2


def test_a_job_that_the_pool_cannot_hold_is_refused_at_the_door():
    with pytest.raises(Exception, match="the pool's cap is 8"):
        replayed([job(0, 5, CAP + 1)])


# -- the program


HEADER = "submit_time_s,duration_s,num_gpus,vc\n"
ROWS = "0,100,6,a\n1,100,4,b\n2,20,2,a\n"
KEYS = {
    *("avg_jct_s", "p50_jct_s", "p99_jct_s", "avg_wait_s", "p99_wait_s", "avg_wait_large_s", "p99_wait_large_s"),
    *("utilization", "makespan_s", "preemptions_per_job", "lost_fraction", "jobs", "wall_s"),
}


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + ROWS)
    return str(path)


def printed(capsys, *arguments, code=0):
    assert main(arguments) == code
    out = capsys.readouterr()
    return out.err if code else out.out


def test_json_is_one_object_with_every_figure(trace, capsys):
    found = json.loads(printed(capsys, trace, "--cap", "8", "--policy", "fifo", "--json"))
    assert found.keys() >= KEYS
    assert (found["jobs"], found["makespan_s"], found["policy"], found["cap"]) == (3, 200, "fifo", 8)
    assert found["avg_wait_s"] == pytest.approx((0 + 99 + 98) / 3, abs=0.001)
    assert found["p99_wait_large_s"] is None
    assert found["utilization"] == pytest.approx((600 + 400 + 40) / (8 * 200))


def test_the_table_shows_the_same_to_people(trace, capsys):
    shown = printed(capsys, trace, "--cap", "8", "--policy", "baseline-skip")
    assert "3 on 8 GPUs" in shown
    assert "Utilization" in shown
    assert [line.split()[0] for line in shown.splitlines()[-3:]] == ["------", "2-7", "all"]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_brings_every_job_to_its_end(policy, trace, capsys):
    assert json.loads(printed(capsys, trace, "--cap", "8", "--policy", policy, "--json"))["jobs"] == 3


def test_a_share_and_the_first_jobs_can_be_chosen(trace, capsys):
    assert json.loads(printed(capsys, trace, "--cap", "8", "--vc", "a", "--json"))["jobs"] == 2
    assert json.loads(printed(capsys, trace, "--cap", "8", "--limit", "1", "--json"))["jobs"] == 1


def test_jobs_larger_than_the_pool_are_counted(trace, capsys):
    assert main([trace, "--cap", "4", "--policy", "fifo", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["capped_jobs"] == 1
    assert shown.err == "Warning: 1 of 3 jobs need more than 4 GPUs; they run on 4.\n"
    assert main([trace, "--cap", "8", "--compare", "--policy", "fifo", "--json"]) == 0
    shown = capsys.readouterr()
    assert (json.loads(shown.out)["capped_jobs"], shown.err) == (0, "")


def test_jobs_larger_than_the_pool_are_cut_to_it(trace, capsys):
    found = json.loads(printed(capsys, trace, "--cap", "4", "--policy", "fifo", "--json"))
    assert found["utilization"] == pytest.approx((400 + 400 + 40) / (4 * found["makespan_s"]), abs=1e-6)


def test_a_gzipped_trace_is_read_as_well(tmp_path, capsys):
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress((HEADER + ROWS).encode()))
    assert json.loads(printed(capsys, str(path), "--cap", "8", "--json"))["jobs"] == 3


def test_the_queue_can_be_asked_when_jobs_will_start(tmp_path, capsys):
    trace = tmp_path / "limits.csv"
    trace.write_text("submit_time_s,duration_s,num_gpus,max_runtime_s\n0,100,6,100\n1,100,4,100\n2,20,2,20\n")
    asked = (str(trace), "--cap", "8", "--policy", "fifo", "--eta", "3")
    found = json.loads(printed(capsys, *asked, "--json"))
    assert (found["eta_asked"], found["eta_known"], found["eta_inside"]) == (2, 2, 1)
    assert found["eta_median_error_s"] == 0  # every job takes the whole of its limit
    assert "100.0% of 2 inside the range" in printed(capsys, *asked)
    assert "eta_asked" not in json.loads(printed(capsys, str(trace), "--cap", "8", "--json"))


def test_a_comparison_gives_ratios_to_skipping(trace, capsys):
    arguments = (trace, "--cap", "8", "--compare", "--policy", "fifo", "--policy", "baseline-easy")
    found = json.loads(printed(capsys, *arguments, "--json"))
    assert list(found["policies"]) == ["baseline-skip", "fifo", "baseline-easy"]
    fifo = found["policies"]["fifo"]
    skip = found["policies"]["baseline-skip"]
    assert fifo["ratios"]["avg_jct_s"] == pytest.approx(fifo["avg_jct_s"] / skip["avg_jct_s"], abs=1e-4)
    assert skip["ratios"]["avg_wait_s"] == 1
    shown = printed(capsys, *arguments)
    assert "3 jobs on 8 GPUs" in shown
    assert "(1.00)" in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("submit_time_s,num_gpus\n1,2\n", "line 1: the column duration_s is missing"),
        ("", "line 1: the column submit_time_s is missing"),
        (HEADER, "the trace has no jobs"),
        (HEADER + "1,2,3,a\n1,-,3,a\n", "line 3: duration_s is '-', not a number of seconds"),
        (HEADER + "1,2,0,a\n", "line 2: num_gpus is '0', not a whole number"),
        (HEADER + "1,2,1.5,a\n", "line 2: num_gpus is '1.5'"),
        (HEADER + "-1,2,1,a\n", "line 2: submit_time_s is '-1'"),
        (HEADER + "nan,2,1,a\n", "line 2: submit_time_s is 'nan'"),
        (HEADER + "1,2\n", "line 2: num_gpus is missing: the line ends after 2 fields"),
        (HEADER + "1,2,3,a,5\n", "line 2: 5 fields, but the header has 4"),
        ("submit_time_s,duration_s,num_gpus,duration_s\n", "line 1: the column duration_s is there 2 times"),
        ("submit_time_s;duration_s;num_gpus\n", "separate the fields by commas, not by semicolons"),
        ("submit_time_s\tduration_s\tnum_gpus\n", "separate the fields by commas, not by tabs"),
        (HEADER + '0,1,1,"a"b\n', "line 2: ',' expected after"),
        (HEADER + '\n0,1,1,"a\n0,1,1,b\n', "line 3: unexpected end of data"),
        (HEADER + "1700000000000,2,1,a\n", "at most 3162240000 (100 years); is it in milliseconds?"),
        (HEADER + "1,2,2000000,a\n", "not a whole number from 1 to 1000000"),
        (HEADER + f"1,2,{'9' * 5000},a\n", "line 2: num_gpus is '99"),
        (HEADER + "0,3e9,8,a\n" * 11, "the jobs take 1,044 years on 8 GPUs, more than 1,000"),
        ("\x1b[31mred,duration_s,num_gpus\n", "(columns:  [31mred, duration_s, num_gpus)"),
    ],
)
def test_errors_in_a_trace_name_line_and_column(tmp_path, capsys, text, message):
    path = tmp_path / "trace.csv"
    path.write_text(text)
    assert message in printed(capsys, str(path), "--cap", "8", code=2)


def test_a_file_that_is_no_text_is_told_so(tmp_path, capsys):
    path = tmp_path / "trace.csv"
    path.write_bytes(b"\x1f\x8bnothing")
    assert "not a CSV file" in printed(capsys, str(path), "--cap", "8", code=2)


def test_a_damaged_gzipped_file_is_told_so(tmp_path, capsys):
    path = tmp_path / "trace.csv.gz"
    raw = bytearray(gzip.compress((HEADER + ROWS).encode()))
    raw[10] = 7  # a block of a type that does not exist
    path.write_bytes(bytes(raw))
    assert "not a CSV file" in printed(capsys, str(path), "--cap", "8", code=2)


def test_an_empty_field_behind_the_last_column_is_ignored(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + "1,2,3,a,\n1,2,4,a, ,\n")
    assert [job.gpus for job in read_trace(str(path))] == [3, 4]


def test_a_closed_standard_input_is_told_so(capsys):
    standard, sys.stdin = sys.stdin, None
    try:
        assert "standard input is closed" in printed(capsys, "-", "--cap", "8", code=2)
    finally:
        sys.stdin = standard


def test_a_file_that_is_not_there_is_told_so(tmp_path, capsys):
    assert "No such file" in printed(capsys, str(tmp_path / "none.csv"), "--cap", "8", code=2)


def test_a_share_that_is_not_there_is_told_with_those_that_are(trace, capsys):
    assert "there are: a, b\n" in printed(capsys, trace, "--cap", "8", "--vc", "c", code=2)


def test_of_many_shares_some_are_named_and_none_controls_the_terminal(tmp_path, capsys):
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + "0,1,1,\x1b[31mred\n" + "".join(f"0,1,1,share{number:04d}\n" for number in range(3000)))
    shown = printed(capsys, str(path), "--cap", "8", "--vc", "c", code=2)
    assert "there are:  [31mred, share0000, share0001, " in shown
    assert shown.endswith("share0008 and 2,991 others\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--cap", "8"],
        ["trace.csv"],
        ["trace.csv", "--cap", "0"],
        ["trace.csv", "--cap", "8", "--policy", "lottery"],
        ["trace.csv", "--cap", "8", "--policy", "fifo", "--policy", "fair"],
        ["trace.csv", "--cap", "8", "--restart-cost", "-1"],
        ["trace.csv", "--cap", "8", "--guaranteed-lane", "1.1"],
        ["trace.csv", "--cap", "1000001"],
        ["trace.csv", "--cap", "9" * 5000],
        ["trace.csv", "--save-trace", "saved.csv", "--json"],
        ["--from-account", "--cap", "8", "--days", "800000"],
    ],
)
def test_wrong_usage_ends_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "error:" in capsys.readouterr().err


def started(*options):
    """A replay of standard input, which does not ignore SIGHUP, as it does if these tests run under nohup."""
    command = [sys.executable, *options, "-m", "trainmaster.local.replay", "-", "--cap", "64", "--policy", "fifo"]
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--days", "3"], "--days requires --from-account"),
        (["--eta", "3", "--policy", "baseline-fifo"], "--eta applies to the orders of the queue"),
        (["--guaranteed-lane", "0.3"], "--guaranteed-lane applies to gittins: add --policy gittins"),
        (["--save-trace", "-", "--json"], "--save-trace - excludes --cap"),
    ],
)
def test_options_that_would_have_no_effect_are_refused(trace, arguments, message, capsys):
    with pytest.raises(SystemExit):
        main([trace, "--cap", "8", *arguments])
    assert message in capsys.readouterr().err


def test_options_that_apply_to_one_policy_of_a_comparison_are_accepted(trace, capsys):
    arguments = (trace, "--cap", "8", "--compare", "--json", "--policy", "gittins", "--policy", "baseline-fifo")
    found = json.loads(printed(capsys, *arguments, "--eta", "3", "--guaranteed-lane", "0.3"))
    assert "eta_asked" in found["policies"]["gittins"]


def test_the_selected_jobs_are_saved_with_their_sizes(trace, tmp_path, capsys):
    saved = tmp_path / "saved.csv"
    printed(capsys, trace, "--vc", "a", "--limit", "1", "--cap", "4", "--save-trace", str(saved), "--json")
    assert [(each.share, each.gpus) for each in read_trace(str(saved))] == [("a", 6)]


def test_the_trace_is_not_replaced_by_what_is_saved_of_it(trace, tmp_path, capsys):
    link = tmp_path / "link.csv"
    link.symlink_to(trace)
    with pytest.raises(SystemExit):
        main([trace, "--vc", "a", "--save-trace", str(link)])
    assert "--save-trace would replace the TRACE" in capsys.readouterr().err
    assert Path(trace).read_text() == HEADER + ROWS


def test_an_unusable_directory_for_pictures_is_told_before_the_replay(trace, capsys):
    assert main([trace, "--cap", "8", "--out", f"{trace}/pictures"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"Error: {trace}/pictures: ")


def test_pictures_are_the_only_files_in_their_directory(trace, tmp_path, capsys):
    out = tmp_path / "pictures"
    printed(capsys, trace, "--cap", "8", "--policy", "fifo", "--out", str(out))
    assert {path.name for path in out.iterdir()} == {
        f"fifo-{kind}.{form}" for kind in ("queue", "gantt") for form in ("svg", "png")
    }


def test_drawing_that_ends_early_leaves_no_pictures(tmp_path):
    drawn = Run("fifo", CAP, replayed([job(0, 10, 1)]), 0.1)
    with pytest.raises(ValueError, match="empty"):
        _draw([drawn, replace(drawn, results=[])], str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device of Linux that is always full")
@pytest.mark.parametrize("arguments", [["--cap", "8", "--policy", "fifo"], ["--save-trace", "-"]])
def test_a_full_disk_is_told_of_the_output(trace, arguments):
    command = [sys.executable, "-m", "trainmaster.local.replay", trace, *arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "Error: standard output: No space left on device\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_ends_it_with_a_line_and_130(number):
    text = gzip.decompress((TRACES / "itp_2021.csv.gz").read_bytes())
    with started() as process:
        assert process.stdin is not None
        # More than a pipe holds: once it is written, the program is at work.
        process.stdin.write(text)
        process.stdin.close()
        process.stdin = None
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"Error: interrupted\n")


def test_ctrl_c_ends_it_with_a_line_while_it_is_imported():
    with started("-X", "importtime") as process:
        assert process.stderr is not None
        next(line for line in process.stderr if b"botocore.exceptions" in line)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    # CPython ends itself by the signal if it comes within an `exec` of text, even if the exception is caught.
    assert process.returncode in (130, -signal.SIGINT)
    assert b"Traceback" not in err
    assert err.endswith(b"Error: interrupted\n")


def test_a_killed_process_of_the_replay_is_told_in_one_line(capsys):
    def connect(_):
        raise BrokenProcessPool

    assert main(["--from-account", "--cap", "8"], connect=connect) == 70
    assert "perhaps because memory ran out" in capsys.readouterr().err


def test_a_queue_that_gets_stuck_is_told_with_its_reasons(capsys):
    replay = Replay([job(0, 10, 2, "first")], ReplaySettings(cap=CAP, policy=Policy(order=Order.FIFO, max_actions=0)))
    with pytest.raises(ReplayFailed, match=r"first waits for the next pass"):
        replay.run()
