"""Parts of a URL that may be shown, and equality of URLs."""

from __future__ import annotations

import pytest

from trainmaster.images.domain.endpoint import key_of
from trainmaster.images.domain.urls import without_secrets, without_secrets_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://h/a", "http://h:80/a"),
        ("https://h/a", "HTTPS://H:443/a"),
        ("https://h/a", "https://user:word@h/a?key=1#part"),
        ("http://h", "http://h/"),
        ("http://[fe80::80]/a", "http://[FE80::80]:80/a"),
    ],
)
def test_a_model_has_one_pool_however_its_url_is_spelt(one, other):
    assert key_of(one) == key_of(other)


@pytest.mark.parametrize("other", ["https://h/a", "http://h:8080/a", "http://h/A", "http://h:443/a"])
def test_other_models_have_other_pools(other):
    assert key_of(other) != key_of("http://h/a")


def test_credentials_and_signatures_of_a_url_are_not_shown():
    url = "https://user:word@h:81/a.tif?X-Amz-Signature=5#p"
    assert without_secrets(url) == "https://h:81/a.tif"
    assert without_secrets("s3://bucket/a?b#c") == "s3://bucket/a?b#c"
    assert without_secrets_of(url, "a.tif?X-Amz-Signature=5, band 1; user:word@h") == "a.tif, band 1; h"
    assert without_secrets_of("https://h/a", "nothing is secret?") == "nothing is secret?"
