"""Models behind URLs: only on listed hosts, over TLS."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.urls import check_listed, listed_addresses, parse_hosts

HOSTS = parse_hosts("models.example.com, Models.Example.org:8443,10.0.0.5,[fd12::1]:9000")
LISTED = [
    "https://models.example.com/ships",
    "https://models.example.com:443/",
    "https://MODELS.EXAMPLE.COM./ships?token=1",
    "https://user:s3cr3t@models.example.org:8443/ships",
    "https://10.0.0.5/m",
    "https://[fd12::1]:9000/m",
]
OTHERS = [
    "https://models.example.org/ships",
    "https://models.example.com:8443/ships",
    "https://a.models.example.com/ships",
    "https://example.com/ships",
    "https://models.example.com.evil.example/ships",
    "https://models.example.com@evil.example/ships",
    "https://evil.example/#models.example.com",
    "https://evil.example/https://models.example.com",
    "https://10.0.0.50/m",
    "https:///ships",
    "https://169.254.169.254/latest/meta-data",
]


@pytest.mark.parametrize("url", LISTED)
def test_a_model_on_a_listed_host_is_called(url: str) -> None:
    check_listed(url, HOSTS)


@pytest.mark.parametrize("url", OTHERS)
def test_a_model_on_any_other_host_is_refused_and_the_parameter_is_named(url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_listed(url, HOSTS)
    assert (caught.value.field, "ModelHosts" in caught.value.hint) == ("imageProcessor.name", True)
    assert "s3cr3t" not in caught.value.message


@pytest.mark.parametrize("url", [*LISTED, *OTHERS])
def test_without_a_list_no_url_is_called(url: str) -> None:
    with pytest.raises(InvalidRequest):
        check_listed(url, parse_hosts(""))


@pytest.mark.parametrize(
    "url", ["http://models.example.com/ships", "http://models.example.com:443/", "ftp://10.0.0.5/"]
)
def test_a_model_is_never_called_in_the_clear(url: str) -> None:
    with pytest.raises(InvalidRequest, match="not encrypted"):
        check_listed(url, HOSTS)


@pytest.mark.parametrize(
    "url", ["https://models.example.com:x/", "https://models.example.com:99999999/", "https://[x/"]
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="not a URL"):
        check_listed(url, HOSTS)


@given(st.text(st.sampled_from("abmodels.exp:/@#?[]%1208443"), max_size=40))
def test_no_spelling_of_another_host_passes(text: str) -> None:
    try:
        check_listed(f"https://{text}", frozenset({"models.example:443"}))
    except InvalidRequest:
        return
    assert text.lower().rpartition("@")[2].startswith("models.example")


@pytest.mark.parametrize(
    "text", ["https://models.example.com", "*.example.com", "models.example.com/ships", "a b", "-a"]
)
def test_a_setting_that_names_no_hosts_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_hosts(text)
    assert caught.value.field == "MODEL_HOSTS"


def test_hosts_that_are_addresses_may_be_private() -> None:
    """A name may not lead to one: its owner could point it anywhere."""
    assert listed_addresses(HOSTS) == {"10.0.0.5", "fd12::1"}
