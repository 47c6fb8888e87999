"""A container's view of itself."""

from __future__ import annotations

import json

import pytest

from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.container.container import Container, ElasticJob, Hook, attempt_number, interface_address

RESOURCES = {"current_host": "algo-2", "hosts": ["algo-1", "algo-2"], "network_interface_name": "eth7"}


@pytest.fixture
def environ(tmp_path):
    config = tmp_path / "input" / "config"
    config.mkdir(parents=True)
    (config / "resourceconfig.json").write_text(json.dumps(RESOURCES))
    return {"SM_BASE_DIR": str(tmp_path), "TRAINING_JOB_NAME": "bert-qstamp-2"}


def test_host_and_address_come_from_resourceconfig_and_the_interface_that_it_names(environ):
    container = Container.from_environment(environ, address_of={"eth7": "10.0.0.9"}.__getitem__)
    assert (container.host, container.hosts) == ("algo-2", ("algo-1", "algo-2"))
    assert container.address == "10.0.0.9"
    assert str(container.failure_file).endswith("/output/failure")


def test_the_address_may_be_given_where_containers_share_a_machine(environ):
    container = Container.from_environment(environ | {"TRAINMASTER_LOCAL_ADDR": "127.0.0.3"})
    assert (container.address, container.interface) == ("127.0.0.3", "")


def test_the_interface_is_known_if_it_exists_and_its_address_is_used(environ, tmp_path):
    assert Container.from_environment(environ, address_of=lambda _: "").interface == ""
    path = tmp_path / "input" / "config" / "resourceconfig.json"
    path.write_text(json.dumps(RESOURCES | {"network_interface_name": "lo"}))
    assert Container.from_environment(environ).interface == "lo"
    assert Container.from_environment(environ | {"TRAINMASTER_LOCAL_ADDR": "127.0.0.3"}).interface == ""


def test_an_interface_has_its_own_address():
    assert interface_address("lo") == "127.0.0.1"


def test_an_interface_that_is_not_there_is_refused_with_those_that_are(environ):
    with pytest.raises(InvalidRequest, match="eth7") as caught:
        Container.from_environment(environ)
    assert "lo" in caught.value.hint


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"hosts": []}'])
def test_a_resourceconfig_that_says_nothing_is_refused_by_its_path(environ, tmp_path, text):
    path = tmp_path / "input" / "config" / "resourceconfig.json"
    path.write_text(text)
    with pytest.raises(InvalidRequest) as caught:
        Container.from_environment(environ)
    assert caught.value.field == str(path)


def test_members_need_run_table_and_bounds():
    given = {
        "TRAINMASTER_HOOK": "members",
        "TRAINMASTER_RUN": "bert",
        "TRAINMASTER_RENDEZVOUS_TABLE": "queue",
        "TRAINMASTER_MIN": "2",
        "TRAINMASTER_MAX": "8",
    }
    assert ElasticJob.from_environment(given) == ElasticJob(
        hook=Hook.MEMBERS, run="bert", table="queue", min_nodes=2, max_nodes=8
    )
    for name in given.keys() - {"TRAINMASTER_HOOK"}:
        with pytest.raises(InvalidRequest) as caught:
            ElasticJob.from_environment({key: text for key, text in given.items() if key != name})
        assert caught.value.field == name


@pytest.mark.parametrize("text", ["0", "-1", "two", "2.5"])
def test_a_bound_that_is_no_number_of_nodes_is_refused(text):
    given = {
        "TRAINMASTER_HOOK": "members",
        "TRAINMASTER_RUN": "r",
        "TRAINMASTER_RENDEZVOUS_TABLE": "t",
        "TRAINMASTER_MIN": text,
    }
    with pytest.raises(InvalidRequest) as caught:
        ElasticJob.from_environment(given)
    assert caught.value.field == "TRAINMASTER_MIN"


def test_other_hooks_and_none_need_nothing():
    assert ElasticJob.from_environment({}).hook is Hook.NONE
    assert ElasticJob.from_environment({"TRAINMASTER_HOOK": "restart"}).hook is Hook.RESTART
    with pytest.raises(InvalidRequest):
        ElasticJob.from_environment({"TRAINMASTER_HOOK": "magic"})


@pytest.mark.parametrize(
    ("name", "attempt"), [("bert", 1), ("bert-qstamp-3", 3), ("bert-qstamp-3-m12", 3), ("bert-qstamp-1-m2", 1)]
)
def test_a_training_jobs_name_tells_its_attempt(name, attempt):
    assert attempt_number(name) == attempt
