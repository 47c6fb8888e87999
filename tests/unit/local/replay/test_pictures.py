"""Pictures: the files that there are, what they say, and that no two jobs sit on one unit."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.local.replay.reference_policies import run_reference
from trainmaster.local.replay.report.gantt import bars
from trainmaster.local.replay.report.pictures import draw
from trainmaster.local.replay.report.results import JobResult
from trainmaster.local.replay.runs import Run
from trainmaster.local.replay.trace.trace import TraceJob

CAP = 8


def job(submit, duration, gpus, name="a", share="default"):
    return TraceJob(name, submit, duration, gpus, share)


def run_of(*jobs, policy="baseline-srpt"):
    return Run(policy, CAP, run_reference(policy, jobs, CAP), 0.1)


PREEMPTED = run_of(job(0, 4000, 8, "long"), job(1000, 300, 4, "short$"))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return draw(PREEMPTED, str(tmp_path_factory.mktemp("drawn") / "new" / "place"))


def words(path):
    return {"".join(element.itertext()).strip() for element in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")}


def test_a_run_gives_both_pictures_in_both_formats(drawn):
    assert [path.name for path in drawn] == [
        "baseline-srpt-queue.svg",
        "baseline-srpt-queue.png",
        "baseline-srpt-gantt.svg",
        "baseline-srpt-gantt.png",
    ]
    for path in drawn:
        begin = path.read_bytes()[:8]
        assert begin == (b"\x89PNG\r\n\x1a\n" if path.suffix == ".png" else b"<?xml ve")


def test_the_pictures_say_what_they_show(drawn):
    queue, _, gantt, _ = (words(path) if path.suffix == ".svg" else None for path in drawn)
    assert {"baseline-srpt: 2 jobs on 8 GPUs", "waiting jobs", "GPUs used of 8", "minutes"} <= queue
    assert {"GPU", "long", "short$", "2 to 7", "8 to 31"} <= gantt


def test_the_same_run_gives_the_same_files(drawn, tmp_path):
    assert [path.read_bytes() for path in draw(PREEMPTED, str(tmp_path))] == [path.read_bytes() for path in drawn]


def test_shares_have_colors_of_their_own(tmp_path):
    draw(run_of(job(0, 10, 1, share="vision"), job(0, 10, 1, share="speech")), str(tmp_path))
    assert {"speech", "vision"} <= words(tmp_path / "baseline-srpt-gantt.svg")


def test_names_are_drawn_as_they_are_without_control_characters(tmp_path):
    draw(run_of(job(0, 10, 1, r"$\x$", "$x_{$"), job(0, 10, 1, "a\x01\ufffeb", "_b")), str(tmp_path))
    assert {r"$\x$", "$x_{$", "a  b", "_b"} <= words(tmp_path / "baseline-srpt-gantt.svg")


@pytest.mark.parametrize(("duration", "unit"), [(600, "minutes"), (20_000, "hours"), (500_000, "days")])
def test_the_axis_has_a_unit_that_fits(tmp_path, duration, unit):
    draw(run_of(job(50, duration, 1)), str(tmp_path))
    assert unit in words(tmp_path / "baseline-srpt-gantt.svg")


def test_a_picture_of_many_jobs_holds_dots_so_that_a_browser_can_show_it(tmp_path):
    jobs = [job(index, 10, 1, f"job-{index}") for index in range(4000)]
    svg = draw(run_of(*jobs, policy="baseline-fifo"), str(tmp_path))[2]
    assert svg.stat().st_size < 500_000
    assert "job-1" not in words(svg)


def test_jobs_that_take_no_time_are_no_obstacle(tmp_path):
    assert draw(run_of(job(5, 0, 1)), str(tmp_path))


@st.composite
def traces(draw_):
    times = st.integers(0, 60)
    found = draw_(st.lists(st.tuples(times, st.integers(0, 50), st.integers(1, CAP)), min_size=1, max_size=30))
    return [job(*each) for each in sorted(found)]


@given(jobs=traces())
def test_no_two_jobs_sit_on_one_unit_at_once(jobs):
    results = run_reference("baseline-srpt", jobs, CAP, 3)
    boxes = bars(results, CAP)
    by_unit = {}
    for box in boxes:
        assert 0 <= box.first < box.first + box.count <= CAP
        for unit in range(box.first, box.first + box.count):
            by_unit.setdefault(unit, []).append((box.start, box.end))
    for spans in by_unit.values():
        ordered = sorted(spans)
        assert all(before[1] <= after[0] for before, after in pairwise(ordered))
    assert sum((box.end - box.start) * box.count for box in boxes) == sum(each.held for each in results)


def test_a_job_that_finds_no_neighbors_has_several_bars():
    a, b, c = job(0, 10, 2, "a"), job(1, 29, 2, "b"), job(2, 8, 2, "c")
    d = job(10, 5, 4, "d")
    results = [JobResult(a, ((0, 10),)), JobResult(b, ((1, 30),)), JobResult(c, ((2, 10),)), JobResult(d, ((10, 15),))]
    assert [(box.first, box.count) for box in bars(results, 6) if box.results.job is d] == [(0, 2), (4, 2)]
