"""Secrets of requests: hidden from those who may not see them, in any place, and the shape of a request is kept."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders import a_request
from trainmaster.domain.access.redaction import (
    REDACTED,
    looks_secret,
    redacted_fields,
    redacted_request,
    redacted_text,
)

HUSH = "h7Vq0zSECRETx9"
"""A value that occurs nowhere by chance."""
SECRET_KEYS = [
    *("password", "DB_PASSWORD", "dbPassword", "MYSQL_PWD", "passphrase", "client_secret", "clientSecrets"),
    *("WANDB_API_KEY", "apiKey", "APIKey", "api-key", "AWS_SECRET_ACCESS_KEY", "aws_access_key_id", "ssh_private_key"),
    *("HF_TOKEN", "token", "auth-token", "hftoken", "AWS_SESSION_TOKEN", "credentials", "GOOGLE_CREDENTIALS"),
    *("Authorization", "bearer", "SESSION_COOKIE", "request.signature"),
]
ORDINARY_KEYS = [
    *("epochs", "max_tokens", "pad_token_id", "eos_token", "token_count", "tokenizer", "num_tokens", "keyframe"),
    *("VolumeKmsKeyId", "KmsKeyId", "key", "Key", "monkey", "author", "authors", "sagemaker_program", "compass"),
    *("SECRET_ARN", "TrainingRepositoryCredentialsProviderArn", "learning-rate", "", "日本", "pattern", "sasha"),
]
SIGNED = [
    "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature={}",
    "https://b.s3.amazonaws.com/k?AWSAccessKeyId=A&Signature={}&Expires=1",
    "https://a.blob.core.windows.net/c/b?sv=2022&sig={}",
    "https://storage.googleapis.com/b/o?X-Goog-Signature={}",
    "https://host/path?a=1&token={}#top",
    "https://host/path#access_token={}",
    "https://host/?next=https%3A%2F%2Fother%2F%3Fsig%3D{}",
    "https://user:{}@host/path",
    "postgres://{}@host:5432/db?sslmode=require",
]
TEXTS = st.text(max_size=12)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), TEXTS)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
ANY_REQUEST = st.dictionaries(st.one_of(TEXTS, st.sampled_from(["Environment", "HyperParameters", "Tags"])), VALUES)


def shape(value):
    """Keys and lengths, and which leaves are texts or numbers."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return value if value is None or isinstance(value, bool) else ""


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_key_that_names_a_secret(key):
    assert looks_secret(key)


@pytest.mark.parametrize("key", ORDINARY_KEYS)
def test_a_key_that_names_none(key):
    assert not looks_secret(key)


def with_secret(place, key):
    """A request with the secret at a place, under this key."""
    return {
        "environment": a_request(Environment={key: HUSH, "MODE": "train"}),
        "hyperparameters": a_request(HyperParameters={key: json.dumps(HUSH)}),
        "nested": a_request(HyperParameters={"config": json.dumps({"deep": [{key: HUSH}]})}),
        "tag": a_request(Tags=[{"Key": key, "Value": HUSH}]),
        "unknown": a_request(NewMember={"Deep": [{key: {"value": [HUSH, 7]}}]}),
        "argument": a_request(AlgorithmSpecification={"ContainerArguments": [f"--{key}", HUSH]}),
        "assigned": a_request(AlgorithmSpecification={"ContainerArguments": [f"--{key}={HUSH}"]}),
    }[place]


PLACES = ["environment", "hyperparameters", "nested", "tag", "unknown", "argument", "assigned"]


@given(place=st.sampled_from(PLACES), key=st.sampled_from(SECRET_KEYS), private=st.booleans())
def test_a_value_that_is_named_as_a_secret_is_hidden_from_everyone(place, key, private):
    request = with_secret(place, key)
    shown = redacted_request(request, private=private)
    assert HUSH not in json.dumps(shown)
    assert redacted_fields(shown)
    assert shown.keys() == request.keys()


@given(
    key=st.text(max_size=10),
    member=st.sampled_from(["Environment", "HyperParameters"]),
    value=st.one_of(st.just(HUSH), st.just(json.dumps(HUSH)), st.just(json.dumps({"a": HUSH}))),
)
def test_environment_and_hyperparameters_are_hidden_from_others(key, member, value):
    shown = redacted_request(a_request(**{member: {key: value}}), private=False)
    assert HUSH not in json.dumps(shown)
    assert shown[member].keys() == {key}


@given(url=st.sampled_from(SIGNED), before=st.text(max_size=5), nested=st.booleans())
def test_signatures_of_urls_are_hidden_from_others_wherever_they_stand(url, before, nested):
    text = f"{before} {url.format(HUSH)}"
    request = a_request(imageUrls=[text], Deep={"inside": json.dumps({"url": text}) if nested else text})
    assert HUSH not in json.dumps(redacted_request(request, private=False))
    assert HUSH not in redacted_text(text)


@pytest.mark.parametrize("url", SIGNED)
def test_the_owner_sees_the_urls_of_a_request(url):
    request = a_request(imageUrls=[url.format(HUSH)])
    assert redacted_request(request, private=True) == request


@given(request=ANY_REQUEST, private=st.booleans())
def test_the_shape_of_a_request_is_kept(request, private):
    assert shape(redacted_request(request, private=private)) == shape(request)


@given(request=ANY_REQUEST, private=st.booleans())
def test_a_shown_request_shows_the_same_again(request, private):
    shown = redacted_request(request, private=private)
    assert redacted_request(shown, private=private) == shown


@given(
    environment=st.dictionaries(st.sampled_from(ORDINARY_KEYS), TEXTS),
    parameters=st.dictionaries(st.sampled_from(ORDINARY_KEYS), st.integers().map(str)),
)
def test_the_owner_sees_what_is_no_secret_as_it_was(environment, parameters):
    request = a_request(Environment=environment, HyperParameters=parameters)
    assert redacted_request(request, private=True) == request


def test_a_plain_request_is_shown_whole_to_everyone():
    request = a_request("job1", priority=7, VpcConfig={"Subnets": ["subnet-1"]}, EnableNetworkIsolation=True)
    assert redacted_request(request, private=False) == request
    assert redacted_fields(request) == []


def test_hidden_hyperparameters_stay_text_in_json_as_the_sdk_reads_them():
    request = a_request(HyperParameters={"epochs": "3", "password": '"x"', "secret": "plain"})
    shown = redacted_request(request, private=True)["HyperParameters"]
    assert (json.loads(shown["password"]), shown["secret"], shown["epochs"]) == (REDACTED, REDACTED, "3")


def test_hidden_fields_are_named_by_their_paths():
    request = a_request(Environment={"MODE": "a"}, Tags=[{"Key": "a", "Value": "b"}, {"Key": "token", "Value": "c"}])
    shown = redacted_request(request, private=False)
    assert sorted(redacted_fields(shown)) == ["Environment.MODE", "Tags[1].Value"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("it failed with password=hunter2 at once", f"it failed with password={REDACTED} at once"),
        ('config {"apiKey": "abc", "size": 3}', f'config {{"apiKey": {REDACTED}, "size": 3}}'),
        ("Authorization: Bearer abcdefgh12345678", f"Authorization: {REDACTED} {REDACTED}"),
        ("GET https://h/p?sig=abc&x=1 failed", f"GET https://h/p?sig={REDACTED}&x=1 failed"),
        ("ClientError: password=hunter2, failed", f"ClientError: password={REDACTED}, failed"),
        ("a:b:token: x y", f"a:b:token: {REDACTED} y"),
        ("https://me:pw@h/p", f"https://{REDACTED}@h/p"),
    ],
)
def test_messages_keep_their_words(text, shown):
    assert redacted_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "submitted by arn:aws:sts::111122223333:assumed-role/secrets-team/ada",
        "waits for 2 of 4 x ml.p5.48xlarge: 2 free for it now, expected by 13:32",
        "AlgorithmError: max_tokens=4096 exceeds the limit, see s3://bucket/logs?x=1",
        "CapacityError: Unable to provision (Request ID: 1234)",
    ],
)
def test_ordinary_messages_stay_as_they_are(text):
    assert redacted_text(text) == text


PIECES = [
    f"password={HUSH}",
    f'"token": "{HUSH}"',
    f"Bearer {HUSH}",
    "Error: ",
    " ",
    ":",
    "=",
    '"',
    "max_tokens=3",
    ", ",
]


@given(st.lists(st.one_of(st.sampled_from([*PIECES, *SIGNED]), st.text(max_size=9)), max_size=8).map("".join))
def test_any_text_is_redacted_once(text):
    assert redacted_text(redacted_text(text)) == redacted_text(text)


URLS = [url.format(HUSH) for url in SIGNED]
JOINS = ["", " ", ",", "/", "?u=", "&u=", "#", ";", ")", "%20"]


@given(st.lists(st.tuples(st.sampled_from(URLS), st.sampled_from(JOINS)), min_size=1, max_size=4))
@example([(f"https://user:{HUSH}@host/path", ""), (f"https://user:{HUSH}@host/path", "")])
def test_urls_inside_urls_keep_no_secret(parts):
    text = "".join(url + join for url, join in parts)
    assert HUSH not in redacted_text(text)
    assert HUSH not in json.dumps(redacted_request({"ModelUrl": text}, private=False))
