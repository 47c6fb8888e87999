"""Diagnosis of a waiting job through the API: blocking jobs, reservations, and suggestions that help in truth."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from api_world import ApiWorld
from builders import (
    G5,
    NOW,
    P5,
    a_held_job,
    a_job,
    a_pool,
    a_preempting_job,
    a_request,
    a_running_job,
    at,
    pools_of,
)
from trainmaster.domain.capacity.external import ExternalJob
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Kind, Pool
from trainmaster.domain.policy.settings import Order, Policy, Preemption, Share

A_DAY = 86_400
P5E = "ml.p5e.48xlarge"
ROLE_OF_CALLER = "arn:aws:sts::111122223333:assumed-role/research"


def a_world(*jobs, pools=None, policy=None):
    world = ApiWorld(pools=pools_of(*(pools or [a_pool(P5, 4), a_pool(G5, 4)])))
    if policy is not None:
        world.memory.set_settings(policy=policy)
    world.seed(*jobs)
    return world


def why(world, name):
    return world.get(f"/jobs/{name}", why="true").body["why"]


def running(name, count=1, priority=5, units=None, **fields):
    return a_running_job(name, units=units or {P5: count}, priority=priority, **fields)


class TestWhoIsInTheWay:
    def test_those_that_hold_what_it_could_use_first_those_that_end_first(self):
        world = a_world(
            running("late", 2, now=NOW),
            running("soon", 1, now=at(-3600)),
            a_preempting_job("leaving", priority=9, beneficiary="x", now=NOW),
            a_running_job("elsewhere", units={G5: 1}),
            a_job("waits", units={P5: 4}),
        )
        story = why(world, "waits")
        assert [holder["jobName"] for holder in story["inTheWay"]] == ["leaving", "soon", "late"]
        assert story["jobsInTheWay"] == 3
        leaving, soon, late = story["inTheWay"]
        assert (leaving["stopping"], leaving["expectedEnd"]) == (True, "2026-11-21T12:03:00Z")
        assert (soon["stopping"], soon["expectedEnd"], soon["instances"]) == (False, "2026-11-22T11:00:00Z", 1)
        assert late["instances"] == 2

    def test_ten_are_named_and_all_are_counted(self):
        holders = [running(f"r{n:02}", now=at(-n)) for n in range(12)]
        world = a_world(*holders, a_job("waits"), pools=[a_pool(P5, 12)])
        story = why(world, "waits")
        assert [holder["jobName"] for holder in story["inTheWay"]] == [f"r{n:02}" for n in range(11, 1, -1)]
        assert story["jobsInTheWay"] == 12

    def test_reserved_units_are_listed(self):
        behind = (a_job(f"next{n}", entry_time=at(n)) for n in range(1, 5))
        world = a_world(running("a", 4, now=NOW), a_job("waits", units={P5: 3}), *behind)
        assert why(world, "waits")["reserved"] == {"instances": {P5: 3}, "at": "2026-11-22T12:00:00Z"}
        assert why(world, "next3")["reserved"] == {"instances": {P5: 1}, "at": "2026-11-23T12:00:00Z"}
        assert why(world, "next4")["reserved"] is None, "four are reserved for"

    @pytest.mark.parametrize(("runs_for", "since"), [(30, "12:20"), (300, "13:50")])
    def test_a_protected_job_that_ends_by_itself_is_not_waited_for_longer(self, runs_for, since):
        policy = Policy(preemption=Preemption(min_runtime=timedelta(hours=2)))
        protected = running("low", 4, priority=1, now=at(-600), max_runtime=timedelta(minutes=runs_for))
        world = a_world(protected, a_job("waits", priority=5), policy=policy)
        assert world.get("/jobs/waits").body["reason"]["type"] == "Protected"
        assert why(world, "waits")["reserved"] == {"instances": {P5: 1}, "at": f"2026-11-21T{since}:00Z"}

    @pytest.mark.parametrize("order", [Order.BACKFILL, Order.FIFO])
    def test_units_that_are_free_for_a_job_beyond_its_patience_are_not_reserved_for_others(self, order):
        starving = a_job("starving", units={P5: 4}, entry_time=at(-7_200))
        policy = Policy(order=order, patience=timedelta(hours=1))
        jobs = [running("r", 2, now=NOW), starving, a_job("next"), a_job("wider", units={P5: 3})]
        world = a_world(*jobs, policy=policy)
        found = world.get("/jobs/starving").body["reason"]
        assert (found["type"], found["expected"]) == ("WaitsForCapacity", "2026-11-22T12:00:00Z")
        for behind in ("next", "wider"):
            assert world.get(f"/jobs/{behind}").body["reason"]["message"].startswith("waits behind starving")
            assert why(world, behind)["reserved"] is None

    def test_a_full_pool_is_not_said_to_be_reserved(self):
        jobs = [a_job(f"next{n}", entry_time=at(n)) for n in range(1, 6)]
        world = a_world(running("r", 4, now=at(-3_600)), a_job("waits", units={P5: 4}), *jobs)
        reasons = [world.get(f"/jobs/next{n}").body["reason"] for n in (1, 5)]
        assert [reason["message"] for reason in reasons] == [
            f"waits for 1 of 1 x {P5}: 0 free for it now, expected by 2026-11-23T11:00:00Z",
            f"waits for 1 of 1 x {P5}: 0 free for it now",
        ]

    def test_training_jobs_outside_the_queue(self):
        pools = [a_pool(P5, 16, count_external=True), a_pool(G5, 4)]
        world = a_world(running("r", 4, now=NOW), a_job("waits", units={P5: 3}), pools=pools)
        outside = {f"theirs{n:02}": ExternalJob({P5: 1, G5: 1}) for n in range(11)}
        world.memory.update_external_jobs(outside | {"elsewhere": ExternalJob({G5: 1})})
        story = why(world, "waits")
        assert story["external"] == [
            {
                "pool": P5,
                "instances": 11,
                "trainingJobNames": [f"theirs{n:02}" for n in range(10)],
                "trainingJobs": 11,
            }
        ]
        assert [holder["jobName"] for holder in story["inTheWay"]] == ["r"]


class TestWhatWouldHelp:
    def advice(self, world, name="waits"):
        return why(world, name)["advice"]

    def test_a_priority_above_those_that_would_have_to_step_aside(self):
        world = a_world(
            *(running(f"r{n}", priority=n) for n in range(1, 5)), a_job("waits", units={P5: 2}), pools=[a_pool(P5, 4)]
        )
        (advice,) = self.advice(world)
        assert advice == {
            "message": "raise its priority above 2: it preempts r1, r2",
            "priority": 3,
            "pool": None,
        }

    def test_it_is_true(self):
        world = a_world(
            *(running(f"r{n}", priority=n) for n in range(1, 5)), a_job("waits", units={P5: 2}), pools=[a_pool(P5, 4)]
        )
        (advice,) = self.advice(world)
        assert world.patch("/jobs/waits", {"priority": advice["priority"] - 1}).body["reason"]["type"] != "Preempts"
        reason = world.patch("/jobs/waits", {"priority": advice["priority"]}).body["reason"]
        assert (reason["type"], reason["victims"]) == ("Preempts", ["r1", "r2"])

    def test_no_priority_is_suggested_if_no_job_can_be_preempted(self):
        world = a_world(running("r", 4, preemptible=False), a_job("waits"), pools=[a_pool(P5, 4)])
        assert self.advice(world) == []

    def test_nothing_above_the_ceilings_of_its_share(self):
        """Such suggestions would be refused when followed."""
        jobs = running("r", 4, priority=5, share="team"), a_job("waits", units={P5: 3}, share="team")
        world = a_world(*jobs, pools=[a_pool(P5, 4), a_pool(P5E, 3)])
        for ceilings, left in (({}, 2), ({"max_priority": 5}, 1), ({"max_priority": 5, "max_job_instances": 2}, 0)):
            world.memory.set_settings(policy=Policy(shares={"team": Share(name="team", **ceilings)}))
            assert len(self.advice(world)) == left, ceilings

    @pytest.mark.parametrize(
        ("limit", "said"),
        [
            ({"max": {P5: 2}}, f"share team may have 2 x {P5}, its cap"),
            ({"max_per_user": {P5: 2}}, f"user {ROLE_OF_CALLER} may have 2 x {P5}, the share's cap for one user"),
        ],
    )
    def test_a_limit_of_its_share_that_the_job_alone_exceeds_is_named(self, limit, said):
        policy = Policy(shares={"team": Share(name="team", **limit)})
        large = a_job("large", units={P5: 6}, share="team", submitted_by=ROLE_OF_CALLER)
        world = a_world(large, pools=[a_pool(P5, 4)], policy=policy)
        assert [each["message"] for each in self.advice(world, "large")] == [
            f"raise the cap of {P5} from 4 to 6: it is no longer infeasible, but {said}"
        ]
        request = a_request("job2", count=3, options={"share": "team"})
        expected = f"{said[0].upper()}{said[1:]}: this job alone needs 3 x {P5}, so it waits until that is raised."
        for route in ("/plan", "/add-job"):
            assert expected in world.post(route, request).body["warnings"]
        assert world.post("/plan", a_request("job3", count=2, options={"share": "team"})).body["warnings"] == []

    def test_nothing_less_than_its_whole_demand(self):
        world = a_world(running("r", 2, preemptible=False), a_job("waits", units={P5: 3}), pools=[a_pool(P5, 4)])
        assert self.advice(world) == []

    def test_another_pool_that_has_room_and_all_that_its_own_has(self):
        pools = [a_pool(P5, 4), a_pool(P5E, 3), a_pool(G5, 9)]
        world = a_world(running("r", 4, preemptible=False), a_job("waits", units={P5: 3}), pools=pools)
        (advice,) = self.advice(world)
        assert advice["message"] == f"ask for 3 x {P5E} instead: it starts with the next pass"
        assert advice["pool"] == P5E
        assert world.post("/plan", a_request("other", instance_type=P5E, count=3)).body["decision"] == "start"

    @pytest.mark.parametrize(
        ("own", "other", "suggested"),
        [
            ("ml.p5.48xlarge", "ml.c4.xlarge", False),
            ("ml.p5.48xlarge", "ml.p4d.24xlarge", False),
            ("ml.p4d.24xlarge", "ml.p4de.24xlarge", True),
            ("ml.p4d.24xlarge", "ml.trn1.32xlarge", False),
            ("ml.c5.xlarge", "ml.c5.2xlarge", True),
            ("ml.c5.2xlarge", "ml.c5.xlarge", False),
            ("ml.c5.xlarge", "ml.p5.48xlarge", False),
            ("ml.unknown.large", "ml.p5.48xlarge", False),
        ],
    )
    def test_a_pool_is_suggested_only_if_it_covers_the_demand(self, own, other, suggested):
        world = a_world(
            running("r", 2, units={own: 2}, preemptible=False),
            a_job("waits", units={own: 2}),
            pools=[a_pool(own, 2), a_pool(other, 2)],
        )
        assert [each["pool"] for each in self.advice(world)] == ([other] if suggested else [])

    def test_no_pool_from_another_source(self):
        spot = Pool("spot-p5", 4, type_=P5, kind=Kind.SPOT)
        world = a_world(running("r", 4, preemptible=False), a_job("waits"), pools=[a_pool(P5, 4), spot])
        assert self.advice(world) == []

    def test_at_most_three_and_the_cheapest_pools_first(self):
        larger = ["ml.c5.18xlarge", "ml.c5.9xlarge", "ml.c5.4xlarge", "ml.c5.2xlarge"]
        own = "ml.c5.xlarge"
        pools = [a_pool(own, 1), *(a_pool(name, 1) for name in larger)]
        world = a_world(running("r", units={own: 1}, priority=1), a_job("waits", units={own: 1}), pools=pools)
        priority, *others = self.advice(world)
        assert (priority["priority"], [each["pool"] for each in others]) == (2, larger[:1:-1])

    def test_what_a_job_needs_that_can_never_fit(self):
        small = a_world(a_job("waits", units={P5: 6}), pools=[a_pool(P5, 4)])
        assert [each["message"] for each in self.advice(small)] == [
            f"raise the cap of {P5} from 4 to 6: it starts with the next pass"
        ]
        without = a_world(a_job("waits", units={P5: 2}), pools=[a_pool(G5, 4)])
        assert [each["message"] for each in self.advice(without)] == [
            f"add a pool of 2 x {P5}: it starts with the next pass"
        ]

    def test_nothing_that_its_share_does_not_allow(self):
        share = Share(name="vision", nominal={P5: 1}, borrows={P5: 0})
        world = a_world(
            running("r", 1, share="vision", preemptible=False),
            a_job("waits", units={P5: 2}, share="vision"),
            policy=Policy(shares={"vision": share}),
        )
        assert world.get("/jobs/waits").body["reason"]["type"] == "ShareFull"
        assert self.advice(world) == []


SHARES = {"vision": Share(name="vision", nominal={P5: 4}), "speech": Share(name="speech", nominal={P5: 4})}


class TestSharesThatBorrow:
    """A pool of four that no share owns, full with jobs of two other shares, and a job of priority 60."""

    def queue(self, share="language", **settings):
        policy = Policy(shares={**SHARES, **settings})
        jobs = [a_running_job(f"r{n}", units={G5: 1}, share="vision", now=at(n)) for n in range(4)]
        waits = a_job("urgent", units={G5: 1}, priority=60, share=share)
        return a_world(*jobs, waits, pools=[a_pool(G5, 4)], policy=policy)

    def test_the_rule_that_keeps_a_high_priority_from_preempting(self):
        assert why(self.queue(), "urgent")["rule"] == (
            f"Share language owns 0 x {G5} and would hold 1 with this job, which would therefore borrow: "
            "it preempts no jobs of other shares, whatever its priority."
        )

    def test_the_quota_with_which_it_would_preempt(self):
        world = self.queue()
        (advice,) = why(world, "urgent")["advice"]
        assert advice == {
            "message": f"give share language a quota of 1 x {G5}: it preempts r0",
            "priority": None,
            "pool": G5,
        }
        settings = Policy(shares={**SHARES, "language": Share(name="language", nominal={G5: 1})})
        world.memory.set_settings(policy=settings)
        assert world.get("/jobs/urgent").body["reason"]["victims"] == ["r0"]
        assert why(world, "urgent")["rule"] is None

    def test_no_quota_is_suggested_beyond_the_cap_of_the_share(self):
        world = self.queue(language=Share(name="language", nominal={P5: 0}, max={G5: 0}))
        assert why(world, "urgent")["advice"] == []

    def test_no_quota_is_suggested_that_other_shares_own(self):
        world = self.queue(speech=Share(name="speech", nominal={G5: 4}))
        story = why(world, "urgent")
        assert story["rule"].startswith("Share language owns 0")
        assert story["advice"] == []

    def test_a_share_whose_own_units_its_jobs_of_higher_rank_hold(self):
        policy = Policy(shares={"vision": Share(name="vision", nominal={P5: 2})})
        mine = running("mine", 2, share="vision", priority=9)
        urgent = a_job("urgent", share="vision", priority=8)
        world = a_world(mine, running("r", 2, share="speech"), urgent, policy=policy)
        assert why(world, "urgent")["rule"].startswith(f"Share vision owns 2 x {P5} and would hold 3 with this job")

    def test_a_job_that_outranks_none_of_the_others_has_no_such_rule(self):
        jobs = [a_running_job("r", units={G5: 4}, share="vision", priority=60)]
        world = a_world(*jobs, a_job("waits", units={G5: 1}, priority=60, share="x"), policy=Policy(shares=SHARES))
        assert why(world, "waits")["rule"] is None

    def test_queues_without_shares_have_no_such_rule(self):
        world = a_world(running("r", 4, preemptible=False), a_job("waits", priority=60))
        assert why(world, "waits")["rule"] is None


ASKED = Resources(accelerators=8, accelerator_memory_gib=640)
"""Resources that an instance of P5 has, and one of G5 does not."""


def asking(name="waits", instances=1, **fields):
    """Submitted when there was no pool for it."""
    return a_job(name, demand=Demand((), queue_selects_pool=True, resources=ASKED, instances=instances), **fields)


class TestWhatWouldHelpAJobThatNoPoolCouldHold:
    def advice(self, world):
        return [(each["message"], each["pool"]) for each in why(world, "waits")["advice"]]

    def test_a_new_pool_of_the_cheapest_type_that_has_what_it_asks_for(self):
        world = a_world(asking(instances=2), pools=[a_pool(G5, 4)])
        assert world.get("/jobs/waits").body["reason"]["type"] == "Infeasible"
        ((message, pool),) = self.advice(world)
        assert message == f"add a pool of 2 x {pool}: it starts with the next pass"
        world.memory.set_settings(pools=[a_pool(G5, 4), a_pool(pool, 2)])
        job = world.get("/jobs/waits", why="true").body
        assert (job["reason"], job["demand"], job["why"]["advice"]) == (None, [{pool: 2}], [])

    def test_a_larger_pool(self):
        first, _ = self.advice(a_world(asking(instances=6), pools=[a_pool(P5, 4)]))
        assert first == (f"raise the cap of {P5} from 4 to 6: it starts with the next pass", P5)

    def test_a_pool_that_is_large_enough_helps_though_it_is_full(self):
        world = a_world(running("r", 4, preemptible=False), asking(instances=6), pools=[a_pool(P5, 4)])
        messages = [message for message, _ in self.advice(world)]
        assert f"raise the cap of {P5} from 4 to 6: it is no longer infeasible" in messages

    def test_holders_are_listed_for_current_pools(self):
        world = a_world(running("r", 4, preemptible=False), asking(), pools=[a_pool(P5, 4)])
        assert [holder["jobName"] for holder in why(world, "waits")["inTheWay"]] == ["r"]

    def test_a_plan_says_that_it_would_wait_and_why(self):
        request = a_request("new", options={"resources": str(ASKED)}, ResourceConfig={"VolumeSizeInGB": 30})
        said = a_world(pools=[a_pool(G5, 4)]).post("/plan", request).body
        assert (said["decision"], said["reason"]["type"], said["reason"]["largest"]) == ("wait", "Infeasible", 0)
        assert said["reason"]["resources"] == str(ASKED)
        assert said["warnings"][0].startswith("Infeasible for now")

    def test_its_view_has_what_it_asks_for(self):
        world = a_world(asking(instances=2), a_job("plain"), pools=[a_pool(G5, 4)])
        queue = {job["jobName"]: job for job in world.get("/queue").body["jobs"]}
        assert queue["waits"]["resources"] == {
            "accelerators": 8,
            "acceleratorMemoryGib": 640,
            "vcpus": 0,
            "memoryGib": 0,
            "accelerator": "",
        }
        assert [queue["waits"][key] for key in ("instances", "pools", "demand", "jobState")] == [2, [], [], "pending"]
        assert (queue["plain"]["resources"], queue["plain"]["instances"]) == (None, None)

    def test_it_is_listed_under_the_pools_of_now_that_have_what_it_asks_for(self):
        world = a_world(asking())
        listed = {pool: [job["jobName"] for job in world.get("/jobs", pool=pool).body["jobs"]] for pool in (P5, G5)}
        assert listed == {P5: ["waits"], G5: []}


class TestJobsWithoutADiagnosis:
    @pytest.mark.parametrize("job", [running("job1"), a_held_job("job1")], ids=["running", "held"])
    def test_of_a_job_that_does_not_wait(self, job):
        assert why(a_world(job), "job1") is None

    def test_of_a_job_that_starts_there_is_nothing_to_tell(self):
        assert why(a_world(a_job("job1")), "job1") == {
            "inTheWay": [],
            "jobsInTheWay": 0,
            "external": [],
            "reserved": None,
            "rule": None,
            "advice": [],
        }

    def test_of_a_job_that_a_pass_does_not_look_at(self):
        world = a_world(running("r", 4), *(a_job(f"j{n:03}", entry_time=at(n)) for n in range(60)))
        assert why(world, "j059") is None
        assert why(world, "j001") is not None

    def test_where_it_is_not_asked_for(self):
        world = a_world(running("r", 4), a_job("waits"))
        assert world.get("/jobs/waits").body["why"] is None
        assert world.get("/jobs/waits", why="perhaps").status == 400


class TestDeadlines:
    def deadline(self, world, name="job1"):
        return world.get(f"/jobs/{name}").body["deadline"]

    def test_of_waiting_held_and_running_jobs(self):
        due = at(2 * A_DAY + 3600)
        for job in (a_job("job1", deadline=due), a_held_job("job1", deadline=due), running("job1", deadline=due)):
            found = self.deadline(a_world(job))
            assert (found["deadline"], found["prospect"]) == ("2026-11-23T13:00:00Z", "in time")
            assert found["latestStart"] == "2026-11-22T13:00:00Z"
            said = "will probably be done by 2026-11-23T13" if job.units else "has to start by 2026-11-22T13"
            assert found["message"].startswith(said)

    def test_one_that_cannot_be_met_says_so(self):
        assert self.deadline(a_world(a_job("job1", deadline=at(-60))))["prospect"] == "lost"

    def test_in_lists_and_plans_too(self):
        world = a_world(running("job1", deadline=at(A_DAY)))
        (job,) = world.get("/jobs").body["jobs"]
        assert job["deadline"]["deadline"] == "2026-11-22T12:00:00Z"
        tag = {"Key": "trainmaster:deadline", "Value": "2026-11-21T12:30:00Z"}
        request = a_request("new")
        plan = world.post("/plan", request | {"Tags": [*request.get("Tags", []), tag]}).body
        assert plan["deadline"]["prospect"] == "late"
        assert any("only if it is faster" in warning for warning in plan["warnings"])

    def test_no_job_without_one_has_any(self):
        assert self.deadline(a_world(a_job("job1"))) is None


class TestPositions:
    def test_they_are_the_places_in_which_jobs_are_considered(self):
        """A deadline that is near moves a job before its equals, and so its position."""
        urgent = a_job("urgent", max_runtime=timedelta(hours=1), entry_time=at(-7000), deadline=at(3700))
        world = a_world(running("r", 4), a_job("first", entry_time=at(-9000)), urgent, a_job("last"))
        shown = {job["jobName"]: job["position"] for job in world.get("/queue").body["jobs"]}
        assert shown == {"urgent": 1, "first": 2, "last": 3}

    def test_with_shares_they_follow_the_shares_turns(self):
        """The owner goes before those who came earlier and would borrow."""
        shares = {name: Share(name=name, nominal={P5: 2}) for name in ("speech", "vision")}
        world = a_world(
            running("r", 2, share="speech"),
            *(a_job(f"borrower{n}", share="speech", entry_time=at(-90 + n)) for n in range(3)),
            a_job("owner", share="vision"),
            policy=Policy(shares=shares),
        )
        shown = {job["jobName"]: job["position"] for job in world.get("/queue").body["jobs"]}
        assert shown["owner"] == 1

    def test_the_order_gittins_has_its_own(self):
        served = a_job("served", entry_time=at(-9000))
        world = a_world(running("r", 4), served, a_job("fresh"), policy=Policy(order=Order.GITTINS))
        shown = {job["jobName"]: job["position"] for job in world.get("/queue").body["jobs"]}
        assert sorted(shown.values()) == [1, 2]


class TestPlans:
    def test_other_jobs_that_would_start_with_it(self):
        """A patient job of its own size blocks the others; the new one, in its way, changes nothing for them."""
        world = a_world(running("r", 3), a_job("waits", units={P5: 2}))
        assert world.post("/plan", a_request("new")).body["wouldStart"] in ([], ["new"])

    def test_a_plan_for_an_existing_job_delays_no_other(self):
        world = a_world(running("r", 4))
        world.submit("job1", priority=1)
        plan = world.post("/plan", a_request("job1", priority=1)).body
        assert (plan["wouldDelay"], plan["wouldStart"]) == ([], [])


def test_a_large_queue_is_answered_within_a_second_of_the_processor():
    """1,000 active and 1,000 waiting jobs: pages, one job's story, a deep one, a submission and a plan."""
    world = a_world(
        *(running(f"r{n:04}", 1 + n % 4, priority=1, now=at(-60 * n)) for n in range(1_000)),
        *(a_job(f"w{n:04}", units={P5: 1 + n % 4}, priority=1, entry_time=at(n)) for n in range(1_000)),
        pools=[a_pool(P5, 2_500), a_pool(G5, 10)],
    )
    asked = {
        "queue": lambda: world.get("/queue", limit="100"),
        "jobs": lambda: world.get("/jobs", state="pending", limit="100"),
        "why": lambda: world.get("/jobs/w0005", why="true"),
        "deep": lambda: world.get("/jobs/w0999", why="true"),
        "add": lambda: world.post("/add-job", a_request("new", priority=1)),
        "plan": lambda: world.post("/plan", a_request("newer", priority=1)),
    }
    for name, ask in asked.items():
        began = time.process_time()
        assert ask().status in (200, 202)
        assert time.process_time() - began < 1, name
