"""The worker's store of its state, on engines of DynamoDB; torch's contract for the same is proved in tests/torch."""

from __future__ import annotations

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError, NoRegionError, ReadTimeoutError

from trainmaster.worker.rendezvous.dynamodb import (
    CLIENT_CONFIG,
    RETENTION_SECONDS,
    DynamoStateStore,
    TableAddress,
    dynamodb_client,
)
from trainmaster.worker.rendezvous.errors import Unreachable, Unverified
from trainmaster.worker.rendezvous.run import Run

ROLE = "arn:aws:iam::111122223333:role/training"
BERT = Run("bert", "secret", ROLE)


class StateStoreContract:
    @pytest.fixture
    def store(self, engine):
        return DynamoStateStore(engine.client, engine.name, BERT, now=lambda: 1000.7)

    def test_nothing_is_stored_at_first(self, store):
        assert (store.get_state(), store.control) == (None, None)

    def test_tokens_are_true_and_change_with_every_write(self, store):
        tokens = [store.set_state(b"one")[1]]
        for _ in range(3):
            *_, token, written = store.set_state(b"one", tokens[-1])
            assert written
            tokens.append(token)
        assert all(tokens)
        assert len(set(tokens)) == len(tokens)
        assert store.get_state() == (b"one", tokens[-1])

    @pytest.mark.parametrize("token", [None, 1, 3, "invalid"])
    def test_a_late_writer_gets_the_stored_state(self, store, token):
        store.set_state(b"one")
        store.set_state(b"two", 1)
        assert store.set_state(b"three", token) == (b"two", 2, False)

    def test_a_token_of_a_row_that_has_expired_writes_nothing(self, store):
        assert store.set_state(b"one", 4) is None
        assert store.get_state() is None

    def test_a_row_expires_long_after_its_last_write(self, store, engine):
        store.set_state(b"one")
        (row,) = engine.rows()
        assert row["expires"] == {"N": str(1000 + RETENTION_SECONDS)}

    def test_a_row_of_another_kind_is_not_read(self, store, engine):
        key = {"pk": {"S": BERT.partition}, "sk": {"S": "state"}}
        engine.client.put_item(TableName=engine.name, Item=key | {"st": {"S": "text"}, "rev": {"N": "1"}})
        with pytest.raises(Unverified):
            store.get_state()

    def test_runs_have_rows_of_their_own(self, store, engine):
        store.set_state(b"one")
        assert DynamoStateStore(engine.client, engine.name, Run("bert-qstamp-2", "secret", ROLE)).get_state() is None

    def test_a_table_that_is_not_there_is_out_of_reach(self, engine):
        with pytest.raises(Unreachable, match="ResourceNotFound"):
            DynamoStateStore(engine.client, "no-such-table", BERT).get_state()


class TestOnDynoxide(StateStoreContract):
    @pytest.fixture
    def engine(self, dynoxide_engine):
        return dynoxide_engine


class TestOnMoto(StateStoreContract):
    @pytest.fixture
    def engine(self, moto_engine):
        return moto_engine


class LostAnswer:
    """A client whose first answer to a write gets lost, and which asks again, as botocore does."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)

    def update_item(self, **request):
        self._client.update_item(**request)
        return self._client.update_item(**request)


def test_a_write_that_was_sent_twice_is_told_as_lost_and_shows_itself(dynoxide_engine):
    store = DynamoStateStore(LostAnswer(dynoxide_engine.client), dynoxide_engine.name, BERT)
    assert store.set_state(b"one") == (b"one", 1, False)


class Silent:
    """A table that never answers."""

    def get_item(self, **request):
        raise ReadTimeoutError(endpoint_url="http://table")

    update_item = get_item


def test_silence_leaves_open_whether_it_was_written():
    store = DynamoStateStore(Silent(), "queue", BERT)
    for call in (store.get_state, lambda: store.set_state(b"one"), lambda: store.set_state(b"one", 3)):
        with pytest.raises(Unreachable, match="ReadTimeoutError"):
            call()


@pytest.mark.parametrize(
    ("failure", "advice"),
    [
        (ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetItem"), "attach the policy RendezvousPolicyArn"),
        (ConnectTimeoutError(endpoint_url="https://dynamodb"), "an endpoint for DynamoDB or a NAT gateway"),
        (NoCredentialsError(), "EnableNetworkIsolation"),
        (ClientError({"Error": {"Code": "InternalServerError", "Message": "busy"}}, "GetItem"), "busy"),
    ],
)
def test_an_error_tells_what_to_do_about_its_usual_cause(failure, advice):
    class Failing:
        def get_item(self, **_):
            raise failure

    with pytest.raises(Unreachable, match=advice):
        DynamoStateStore(Failing(), "queue", BERT).get_state()


def test_the_client_gives_up_in_seconds(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    client = dynamodb_client()
    assert (client.meta.region_name, dynamodb_client("us-east-1").meta.region_name) == ("eu-west-1", "us-east-1")
    assert (client.meta.config.connect_timeout, client.meta.config.read_timeout) == (2, 4)
    assert isinstance(CLIENT_CONFIG, Config)
    assert boto3.DEFAULT_SESSION is None, "a session of its own: the script may have set up another one"


@pytest.mark.parametrize(
    ("environ", "region"),
    [
        ({"AWS_REGION": "eu-west-2", "TRAINING_JOB_ARN": "arn:aws:sagemaker:eu-north-1:1:training-job/a"}, "eu-west-2"),
        ({"TRAINING_JOB_ARN": "arn:aws-us-gov:sagemaker:us-gov-west-1:1:training-job/a"}, "us-gov-west-1"),
    ],
)
def test_the_client_knows_the_region_of_a_container_where_boto3_does_not(monkeypatch, tmp_path, environ, region):
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    assert dynamodb_client(environ=environ).meta.region_name == region


def test_a_client_without_any_region_says_so(monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(NoRegionError):
        dynamodb_client(environ={"TRAINING_JOB_ARN": "none"})


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [("sagemaker-queue", TableAddress("sagemaker-queue")), ("eu-west-1/queue", TableAddress("queue", "eu-west-1"))],
)
def test_an_endpoint_names_a_table(endpoint, address):
    assert TableAddress.parse(endpoint) == address


@pytest.mark.parametrize("endpoint", ["", "ab", "eu-west-1/", "localhost:29400", "Europe/queue"])
def test_another_endpoint_is_refused(endpoint):
    with pytest.raises(ValueError, match="TABLE or REGION/TABLE"):
        TableAddress.parse(endpoint)
