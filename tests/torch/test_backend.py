"""Torch's requirements for a backend: the behaviors in the common test of its own backends."""

from __future__ import annotations

import threading

import boto3
import pytest
from botocore.config import Config
from torch.distributed.elastic.rendezvous import (
    RendezvousConnectionError,
    RendezvousParameters,
    RendezvousStateError,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend

from trainmaster.worker.rendezvous.dynamodb import DynamoStateStore
from trainmaster.worker.rendezvous.run import Run
from trainmaster.worker.torch.backend import DynamoDBRendezvousBackend, create_backend

RUN = Run("bert-qstamp-1", "secret", "arn:aws:iam::111122223333:role/training")
KEY = {"pk": {"S": RUN.partition}, "sk": {"S": "state"}}


@pytest.fixture
def backend(client, table):
    return DynamoDBRendezvousBackend(DynamoStateStore(client, table, RUN))


@pytest.fixture
def corrupted(client, table):
    def corrupt(**attributes):
        client.put_item(TableName=table, Item=KEY | attributes)

    return corrupt


def test_it_is_a_backend_of_the_name_by_which_it_is_selected(backend):
    assert isinstance(backend, RendezvousBackend)
    assert backend.name == "dynamodb"


def test_there_is_no_state_at_first(backend):
    assert backend.get_state() is None


def test_the_first_state_needs_no_token(backend):
    state, token, written = backend.set_state(b"one")
    assert (state, written) == (b"one", True)
    assert token
    assert backend.get_state() == (b"one", token)


def test_only_the_holder_of_the_token_replaces_a_state_and_the_token_changes(backend):
    _, first, _ = backend.set_state(b"one")
    state, second, written = backend.set_state(b"two", first)
    assert (state, written) == (b"two", True)
    assert second != first
    assert backend.get_state() == (b"two", second)


def test_even_the_same_state_has_another_token_once_written(backend):
    _, first, _ = backend.set_state(b"one")
    assert backend.set_state(b"one", first)[1] != first


@pytest.mark.parametrize("wrong", [None, "old", "invalid", 0, -3, 99, True, 1.0, b"1"])
def test_without_the_token_of_the_state_one_gets_the_state_and_changes_nothing(backend, wrong):
    _, old, _ = backend.set_state(b"one")
    _, token, _ = backend.set_state(b"two", old)
    assert backend.set_state(b"three", old if wrong == "old" else wrong) == (b"two", token, False)
    assert backend.get_state() == (b"two", token)


def test_a_token_where_nothing_is_stored_stores_nothing(backend):
    assert backend.set_state(b"one", 3) is None
    assert backend.set_state(b"one", "invalid") is None
    assert backend.get_state() is None


def test_of_concurrent_writers_each_revision_has_one_winner(client, table):
    """Every writer adds its mark by read, change and write, as torch's nodes do."""
    backends = [DynamoDBRendezvousBackend(DynamoStateStore(client, table, RUN)) for _ in range(8)]

    def add(backend, mark):
        stored = backend.get_state() or (b"", None)
        while True:
            *stored, written = backend.set_state(stored[0] + mark, stored[1])
            if written:
                return

    def work(backend, mark):
        for _ in range(10):
            add(backend, mark)

    threads = [threading.Thread(target=work, args=(each, b"%d" % n)) for n, each in enumerate(backends)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state, _ = backends[0].get_state()
    assert sorted(state) == sorted(b"01234567" * 10)


@pytest.mark.parametrize(
    "attributes",
    [
        {"st": {"S": "text"}, "rev": {"N": "1"}},
        {"st": {"B": b"one"}},
        {"rev": {"N": "1"}},
        {"st": {"B": b""}, "rev": {"S": "x"}},
    ],
)
def test_a_row_that_nodes_do_not_write_is_corrupt(backend, corrupted, attributes):
    corrupted(**attributes)
    with pytest.raises(RendezvousStateError):
        backend.get_state()


def test_a_corrupt_row_is_found_by_a_lost_write_too(backend, corrupted):
    corrupted(rev={"N": "7"})
    with pytest.raises(RendezvousStateError):
        backend.set_state(b"one", 3)


def test_the_control_is_neither_state_nor_token(backend, corrupted):
    corrupted(control={"S": '{"epoch":1}'})
    assert backend.get_state() is None
    assert backend.set_state(b"one")[2]


def test_whatever_keeps_it_from_the_table_is_an_error_that_torch_allows(engine):
    missing = DynamoDBRendezvousBackend(DynamoStateStore(engine.client(), "no-such-table", RUN))
    impatient = Config(connect_timeout=0.2, read_timeout=0.2, retries={"total_max_attempts": 1})
    away = a_client_of_a_closed_port(impatient)
    silent = DynamoDBRendezvousBackend(DynamoStateStore(away, "queue", RUN))
    for backend in (missing, silent):
        with pytest.raises(RendezvousConnectionError):
            backend.get_state()
        with pytest.raises(RendezvousConnectionError):
            backend.set_state(b"one")


def a_client_of_a_closed_port(config):
    return boto3.session.Session().client(
        "dynamodb",
        endpoint_url="http://127.0.0.1:9",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=config,
    )


@pytest.mark.parametrize("endpoint", ["sagemaker-queue", "eu-west-1/sagemaker-queue", "us-gov-west-1/queue"])
def test_the_endpoint_is_a_table_with_or_without_its_region(endpoint, monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("TRAINMASTER_RENDEZVOUS_KEY", "secret")
    assert create_backend(RendezvousParameters("dynamodb", endpoint, RUN.name, 1, 2)).name == "dynamodb"


@pytest.mark.parametrize("endpoint", ["", "a", "eu-west-1/", "/queue table", "http://host:8000/queue", "a/b/c"])
def test_another_endpoint_is_refused_with_what_it_should_be(endpoint):
    with pytest.raises(ValueError, match="TABLE or REGION/TABLE"):
        create_backend(RendezvousParameters("dynamodb", endpoint, RUN.name, 1, 2))
