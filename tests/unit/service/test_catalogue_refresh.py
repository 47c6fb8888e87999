"""Learning of instance types beside the passes: when AWS is asked, what is kept, and that it stops nothing."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.awsrequest import AWSResponse
from moto import mock_aws

import builders as b
from aws_clients import aws_session
from trainmaster.bootstrap import Application, Settings
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.errors import NotPermitted, Throttled, Unavailable
from trainmaster.domain.policy.settings import Expansion, Policy
from trainmaster.handlers.manager import consume, metrics
from trainmaster.local.memory.store import MemoryStore
from trainmaster.ports.sagemaker import OpenJobsPage
from trainmaster.service.capacity.catalogue import AGE, PAUSE, CatalogueRefresher, Sources, merged

SECOND = timedelta(seconds=1)
NEW = InstanceType(name="ml.new.large", vcpus=4, memory_gib=16, network_gbps=10)
P5 = replace(SHIPPED[b.P5], price=0.0)
"""As EC2 tells it."""
EXPANDING = Policy(expansion=Expansion(enabled=True))


class Aws:
    """EC2, Service Quotas, the price list and the clock in one; an exception in place of an answer is raised."""

    def __init__(self):
        self.time = b.NOW
        self.types = {b.P5: P5}
        self.limits = {b.P5: 4}
        self.told = {b.P5: 98.5}
        self.asked = []

    def now(self):
        return self.time

    def sleep(self, seconds):
        raise AssertionError("learning does not wait")

    def describe(self, names):
        self.asked.append("types")
        self.names = set(names)
        return self._said(self.types)

    def quotas(self):
        self.asked.append("quotas")
        return self._said(self.limits)

    def prices(self):
        self.asked.append("prices")
        return self._said(self.told)

    def asked_since(self):
        asked, self.asked = self.asked, []
        return asked

    @staticmethod
    def _said(answer):
        if isinstance(answer, Exception):
            raise answer
        return answer


class Table(MemoryStore):
    """A store whose settings can be out of reach."""

    trouble = None

    def settings(self):
        if self.trouble is not None:
            raise self.trouble
        return super().settings()


@pytest.fixture
def aws():
    return Aws()


@pytest.fixture
def store():
    return Table(default_pools=b.pools_of(b.a_pool()), now=lambda: b.NOW)


@pytest.fixture
def learner(store, aws):
    return CatalogueRefresher(store, store, Sources(aws, aws, aws), aws)


def known(store):
    return store.settings().catalogue


class TestWhen:
    def test_at_first_and_then_once_a_day(self, store, aws, learner):
        assert learner.refresh_if_due()
        assert known(store).learned_at == b.NOW
        aws.time += AGE - SECOND
        assert not learner.refresh_if_due()
        assert aws.asked_since() == ["types"]
        aws.time += PAUSE
        assert learner.refresh_if_due()
        assert (aws.asked_since(), known(store).learned_at) == (["types"], aws.time)

    def test_ticks_within_the_hour_do_not_even_look(self, store, aws, learner):
        learner.refresh_if_due()
        store.trouble = AssertionError("it looked")
        for _ in range(59):
            aws.time += timedelta(minutes=1)
            assert not learner.refresh_if_due()

    def test_a_new_process_does_not_ask_again_what_was_learned_lately(self, store, aws, learner):
        learner.refresh_if_due()
        aws.time += timedelta(hours=2)
        assert not CatalogueRefresher(store, store, Sources(aws, aws, aws), aws).refresh_if_due()
        assert aws.asked_since() == ["types"]

    def test_a_failure_rests_for_an_hour(self, store, aws, learner):
        aws.types = Throttled("slow down")
        assert not learner.refresh_if_due()
        assert known(store).learned_at is None
        aws.time += PAUSE - SECOND
        aws.types = {}
        assert not learner.refresh_if_due()
        assert aws.asked_since() == ["types"]
        aws.time += SECOND
        assert learner.refresh_if_due()
        assert known(store).learned_at == aws.time

    def test_quotas_are_asked_for_only_while_the_queue_may_make_pools(self, store, aws, learner):
        learner.refresh_if_due()
        assert (aws.asked_since(), known(store).quotas) == (["types"], {})
        store.set_settings(policy=EXPANDING)
        aws.time += PAUSE
        assert learner.refresh_if_due()
        assert (aws.asked_since(), known(store).quotas) == (["quotas", "prices"], {b.P5: 4})
        assert known(store).learned_at == b.NOW
        aws.time += PAUSE
        assert not learner.refresh_if_due()
        aws.time = b.NOW + AGE
        assert learner.refresh_if_due()
        assert set(aws.asked_since()) == {"quotas", "types"}

    def test_a_new_pool_of_an_unknown_type_is_looked_up_within_the_hour(self, store, aws, learner):
        learner.refresh_if_due()
        store.set_settings(pools=[Pool("mine", 1, type_=NEW.name)])
        aws.time += PAUSE
        aws.types = {NEW.name: NEW}
        assert learner.refresh_if_due()
        assert known(store).of_pool(store.settings().pools["mine"]) == NEW
        aws.time += PAUSE
        assert not learner.refresh_if_due()

    def test_every_type_that_may_matter_is_asked_about(self, store, aws, learner):
        store.set_settings(pools=[Pool("mine", 1, type_="ml.own.large")], policy=EXPANDING)
        aws.limits, aws.told = {"ml.quota.large": 1}, {"ml.priced.large": 1.5}
        learner.refresh_if_due()
        assert aws.names == {*SHIPPED, "ml.own.large", "ml.quota.large", "ml.priced.large"}


class TestPrices:
    @pytest.mark.parametrize("rules", [Expansion(enabled=True), Expansion(dollars_per_hour=20.0)])
    def test_are_asked_for_where_pools_may_be_made_or_have_a_budget(self, store, aws, learner, rules):
        learner.refresh_if_due()
        assert (aws.asked_since(), known(store).priced_at) == (["types"], None)
        store.set_settings(policy=Policy(expansion=rules))
        aws.time += PAUSE
        assert learner.refresh_if_due()
        assert "prices" in aws.asked_since()
        assert known(store).type_of(b.P5) == replace(SHIPPED[b.P5], price=98.5)
        assert known(store).priced_at == aws.time

    def test_are_asked_for_once_a_day_whatever_the_other_answers(self, store, aws, learner):
        store.set_settings(policy=EXPANDING)
        aws.types = aws.limits = NotPermitted("no")
        asked = []
        for _ in range(25):
            learner.refresh_if_due()
            asked.append(aws.asked_since().count("prices"))
            aws.time += PAUSE
        assert asked == [1] + 23 * [0] + [1]

    @pytest.mark.parametrize("trouble", [Throttled("t"), Unavailable("u"), NotPermitted("n")])
    def test_survive_trouble_with_them_and_are_asked_for_again_after_an_hour(self, store, aws, learner, trouble):
        store.set_settings(policy=EXPANDING)
        learner.refresh_if_due()
        at = aws.time
        aws.time += AGE
        aws.told = trouble
        assert learner.refresh_if_due()
        assert (known(store).prices, known(store).priced_at, known(store).learned_at) == ({b.P5: 98.5}, at, aws.time)
        aws.time += PAUSE
        aws.told = {b.P5: 55.0}
        assert learner.refresh_if_due()
        assert known(store).type_of(b.P5).price == 55.0

    def test_that_are_left_out_stay_as_they_were(self, store, aws, learner):
        store.set_settings(policy=EXPANDING)
        aws.told = {b.P5: 98.5, b.G5: 1.25}
        learner.refresh_if_due()
        aws.time += AGE
        aws.told = {b.G5: 1.5}
        learner.refresh_if_due()
        assert known(store).prices == {b.P5: 98.5, b.G5: 1.5}

    def test_stay_though_types_are_learned_again_and_though_pools_may_be_made_no_longer(self, store, aws, learner):
        store.set_settings(policy=EXPANDING)
        learner.refresh_if_due()
        store.set_settings(policy=Policy())
        aws.time += AGE
        aws.types = {b.P5: replace(P5, efa=64)}
        aws.asked_since()
        assert learner.refresh_if_due()
        assert aws.asked_since() == ["types"]
        assert known(store).type_of(b.P5) == replace(SHIPPED[b.P5], efa=64, price=98.5)

    def test_make_no_type_of_which_nothing_else_is_known(self, store, aws, learner):
        store.set_settings(policy=EXPANDING)
        aws.told = {NEW.name: 0.5}
        learner.refresh_if_due()
        assert known(store).type_of(NEW.name) is None
        aws.time += AGE
        aws.types = {NEW.name: NEW}
        learner.refresh_if_due()
        assert known(store).type_of(NEW.name) == replace(NEW, price=0.5)
        assert replace(NEW, price=0.5) in known(store).types


class TestWhatIsKept:
    def test_what_is_as_it_ships_is_not_kept_apart(self, store, learner):
        learner.refresh_if_due()
        assert known(store).learned == {}
        assert known(store).type_of(b.P5) == SHIPPED[b.P5]

    def test_a_type_that_is_new_or_other_is_known_from_then_on_and_keeps_the_shipped_price(self, store, aws, learner):
        aws.types = {b.P5: replace(P5, efa=64), NEW.name: NEW}
        learner.refresh_if_due()
        assert known(store).type_of(b.P5) == replace(SHIPPED[b.P5], efa=64)
        assert known(store).type_of(NEW.name) == NEW
        assert NEW in known(store).types

    def test_what_aws_leaves_out_erases_nothing(self, store, aws, learner):
        aws.types = {b.P5: InstanceType(name=b.P5, vcpus=96), NEW.name: NEW}
        learner.refresh_if_due()
        assert known(store).type_of(b.P5) == replace(SHIPPED[b.P5], vcpus=96)
        aws.types = {}
        aws.time += AGE
        assert learner.refresh_if_due()
        assert known(store).type_of(b.P5).vcpus == 96
        assert known(store).type_of(NEW.name) == NEW

    def test_a_type_that_is_again_as_it_ships_is_dropped(self):
        before = Catalogue({b.P5: replace(SHIPPED[b.P5], efa=64, price=98.32)})
        assert merged(before, {b.P5: P5}, b.NOW) == Catalogue({}, {}, b.NOW)

    @pytest.mark.parametrize("trouble", [Throttled("t"), Unavailable("u"), NotPermitted("n")])
    def test_quotas_survive_trouble_with_them(self, store, aws, learner, trouble):
        store.set_settings(policy=EXPANDING)
        learner.refresh_if_due()
        aws.time += AGE
        aws.limits = trouble
        aws.types = {NEW.name: NEW}
        assert learner.refresh_if_due()
        assert (known(store).quotas, set(known(store).learned), known(store).learned_at) == (
            {b.P5: 4},
            {NEW.name},
            aws.time,
        )

    def test_quotas_are_kept_though_types_are_refused(self, store, aws, learner):
        store.set_settings(policy=EXPANDING)
        aws.types = NotPermitted("no")
        assert learner.refresh_if_due()
        assert (known(store).quotas, known(store).learned_at) == ({b.P5: 4}, None)

    def test_an_answer_without_quotas_does_not_unlearn_them(self, store, aws, learner):
        store.set_settings(policy=EXPANDING)
        learner.refresh_if_due()
        aws.time += AGE
        aws.limits = {}
        learner.refresh_if_due()
        assert known(store).quotas == {b.P5: 4}


class TestHarm:
    def test_a_missing_permission_is_told_once(self, aws, learner, caplog):
        aws.types = NotPermitted("no ec2:DescribeInstanceTypes")
        with caplog.at_level(logging.WARNING):
            for _ in range(5):
                assert not learner.refresh_if_due()
                aws.time += PAUSE
        assert [record.cause for record in caplog.records] == ["no ec2:DescribeInstanceTypes"]
        assert len(aws.asked_since()) == 5

    def test_it_is_told_again_where_it_comes_back(self, aws, learner, caplog):
        for answer in (NotPermitted("once"), {}, NotPermitted("twice")):
            aws.types = answer
            learner.refresh_if_due()
            aws.time += AGE
        assert [record.cause for record in caplog.records] == ["once", "twice"]

    def test_a_table_out_of_reach_stops_nothing(self, store, aws, learner, caplog):
        store.trouble = Unavailable("no table")
        assert not learner.refresh_if_due()
        assert (aws.asked, [record.source for record in caplog.records]) == ([], ["the settings"])


class Context:
    """Lambda's context, as far as the manager reads it."""

    def __init__(self, milliseconds=60_000):
        self.milliseconds = milliseconds

    def get_remaining_time_in_millis(self):
        return self.milliseconds


class IdleAccount:
    """A launcher whose account has no training jobs."""

    def list_open_jobs(self, since, token=None):
        return OpenJobsPage(())


def an_application(store, aws, *, session=None, **settings):
    found = Application(Settings(queue="sagemaker-queue", table="sagemaker-queue", **settings), session)
    found.clock = aws
    found.__dict__.update(
        store=store, launcher=IdleAccount(), checkpoints=None, publisher=None, rendezvous=None, resize_requesters={}
    )
    return found


def consumed(application, kind, context=None):
    body = json.dumps({"kind": kind})
    try:
        return consume(application, {"Records": [{"messageId": "1", "body": body}]}, context or Context())
    finally:
        metrics.clear_metrics()


def refuse(**_):
    error = {"Error": {"Code": "AccessDeniedException", "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return AWSResponse("https://refused.test", 400, {}, None), error


class TestTheManager:
    @pytest.fixture
    def application(self, store, aws, learner):
        found = an_application(store, aws)
        found.__dict__["catalogue_refresher"] = learner
        return found

    def test_a_tick_learns_after_its_pass(self, application, store, aws):
        passes = []
        aws.types = {}
        tell = aws.describe
        aws.describe = lambda names: passes.append(store.read_snapshot().pass_number) or tell(names)
        consumed(application, "tick")
        assert passes == [1]
        assert known(store).learned_at == b.NOW

    def test_a_wake_does_not_wait_for_it(self, application, aws):
        consumed(application, "wake")
        assert aws.asked == []

    def test_a_tick_with_little_time_left_leaves_it_to_the_next(self, application, aws):
        consumed(application, "tick", Context(29_999))
        assert aws.asked == []
        consumed(application, "tick", Context(30_000))
        assert aws.asked == ["types"]

    def test_trouble_fails_no_message(self, application, aws):
        aws.types = NotPermitted("no")
        assert consumed(application, "tick") == {"batchItemFailures": []}

    def test_a_deployment_may_turn_it_off(self, store, aws):
        application = an_application(store, aws)
        assert application.catalogue_refresher is None
        assert consumed(application, "tick") == {"batchItemFailures": []}
        assert known(store) == Catalogue()

    @pytest.mark.parametrize(
        ("variable", "address"),
        [(None, "https://api.pricing.eu-central-1.amazonaws.com/"), ("https://prices.test", "https://prices.test/")],
    )
    def test_the_shipped_parts_learn_prices_of_their_region_at_the_nearest_endpoint(
        self, store, aws, monkeypatch, variable, address
    ):
        if variable is not None:
            monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", variable)
        store.set_settings(policy=EXPANDING)
        asked = []

        def answer(params, **_):
            asked.append((params["url"], json.loads(params["body"])["Filters"][0]["Value"]))
            priced = {"x": {"priceDimensions": {"y": {"unit": "Hrs", "pricePerUnit": {"USD": "61.5000000000"}}}}}
            product = {"attributes": {"usagetype": f"EUW1-Train:{b.P5}", "platoinstancetype": "Training"}}
            told = json.dumps({"product": product, "terms": {"OnDemand": priced}})
            return AWSResponse(params["url"], 200, {}, None), {"PriceList": [told]}

        with mock_aws():
            session = aws_session(aws_access_key_id="test", aws_secret_access_key="test", region_name="eu-west-1")
            session.events.register("before-call.service-quotas", refuse)
            session.events.register("before-call.pricing", answer)
            consumed(an_application(store, aws, session=session, learn_instance_types=True), "tick")
        assert asked == [(address, "eu-west-1")]
        assert (known(store).type_of(b.P5).price, known(store).priced_at) == (61.5, b.NOW)

    def test_the_shipped_parts_learn_from_aws_and_do_without_what_it_refuses(self, store, aws, caplog):
        """moto has EC2's answer; what it knows nothing of, quotas and prices, is refused before it is asked."""
        store.set_settings(policy=EXPANDING, pools=[b.a_pool(), Pool("inf", 1, False, type_="ml.inf2.24xlarge")])
        with mock_aws():
            session = aws_session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
            session.events.register("before-call.service-quotas", refuse)
            session.events.register("before-call.pricing", refuse)
            application = an_application(store, aws, session=session, learn_instance_types=True)
            consumed(application, "tick")
        found = known(store)
        assert (found.learned_at, found.quotas) == (b.NOW, {})
        assert found.type_of(b.P5) == SHIPPED[b.P5]
        assert found.type_of("ml.inf2.24xlarge").accelerators == 6
        assert [record.source for record in caplog.records if hasattr(record, "source")] == ["quotas", "prices"]
