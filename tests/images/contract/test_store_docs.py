"""docs/reference/table.md names every row, attribute and member that is ever written."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from engines import ROOT
from job_lifecycles import a_life
from runs_contract import NOW, begin, claim, done, regions

import builders as b
from image_builders import a_running_image, an_endpoint
from trainmaster.adapters.dynamodb.rows import job_text, row_of, warm_row
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.jobs.job import Change, JobState, ParentRule
from trainmaster.domain.policy.settings import FailureClass, PreemptionOverrides
from trainmaster.images.adapters.endpoint_rows import endpoint_row


def names_in(row) -> set[str]:
    """Attributes, members of JSON objects in them, and what the sort key begins with."""
    found = set(row)
    for name, value in row.items():
        text = job_text(row) if name == "job" and "jobState" in row else value.get("S", "")
        if text.startswith("{"):
            found |= set(json.loads(text))
    if row["pk"]["S"].startswith(("JOB#", "STATE")):
        found.add(re.match(r"[a-z]+#?", row["sk"]["S"])[0])
    return found


def test_every_attribute_and_member_is_in_the_page(dynoxide_engine):
    a_life(dynoxide_engine.open())
    everything = b.a_preempting_job(
        "job1",
        demand=replace(b.a_demand({b.P5: 1}, {b.G5: 1}), queue_selects_pool=True),
        choices=(b.P5, b.G5),
        share="research",
        preemptible=False,
        max_runtime=b.at(60) - b.NOW,
        max_pending=b.at(60) - b.NOW,
        keep_alive=True,
        submitted_by="ada",
        past=(
            b.a_past_attempt(
                training_job_name="other",
                stop_asked_at=b.NOW,
                stop_sent=True,
                saved_at=b.NOW,
                saves_every=b.at(1) - b.NOW,
                interruptions=1,
                reclaimed_at=b.NOW,
                warm_until=b.NOW,
            ),
        ),
        reservation=b.a_reservation(),
        retry_at=b.NOW,
        capacity_failures=1,
        stop_requested=True,
        failure="it broke",
        ended_at=b.NOW,
        warm_pool_key="fit",
        container_image="image",
        checkpointed=True,
        preemption_overrides=PreemptionOverrides(max_preemptions=1),
        not_before=b.at(1),
        deadline=b.at(2),
        after=("job0",),
        if_parent_fails=ParentRule.RUN,
        group="sweep",
        max_concurrent=1,
        retries={FailureClass.SPOT: 1},
        failures={FailureClass.SPOT: 1},
        held_by="ada",
        history=tuple(Change(b.NOW, None, JobState.PENDING, "submitted") for _ in range(50)),
    )
    full = row_of(everything)
    job = json.loads(job_text(full))
    warm = warm_row(WarmPool("job1", {b.P5: 1}, "fit", b.NOW, 1, "job2", b.NOW))
    image = row_of(a_running_image())
    at_work = json.loads(job_text(image))["attempt"]
    rows = [*dynoxide_engine.rows(), full, warm, image, endpoint_row(an_endpoint(), 1)]
    written = set().union(*map(names_in, rows), job["attempt"], at_work, *job["past"]) - {b.P5}
    page = (ROOT / "docs" / "reference" / "table.md").read_text()
    named = set(re.findall(r"`([a-zA-Z]+#?)(?:<[^`]*>)?`", page))
    assert written - named == set()
    assert len(written) >= 70


def test_the_rows_of_image_jobs_are_in_the_page(dynoxide_engine):
    runs = dynoxide_engine.runs()
    runs.create("scene", 1, regions(2))
    begin(runs, 0)
    runs.beat(claim(0), NOW, tiles_done=1)
    runs.leave(claim(0), NOW, reason="no", final=False)
    begin(runs, 0)
    done(runs, 1)
    runs.stop("scene", 1)
    rows = dynoxide_engine.rows()
    runs.forget("scene")
    page = (ROOT / "docs/reference/table.md").read_text()
    found = set().union(*(names_in(row) for row in [*rows, *dynoxide_engine.rows()]))
    assert {"unsettled", "beatAt", "tilesDone", "reason", "forgotten", "stopped"} <= found
    assert [name for name in sorted(found) if f"`{name}`" not in page] == []
