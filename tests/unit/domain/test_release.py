"""Versions of client and service that work together."""

from __future__ import annotations

import pytest

from trainmaster.domain.release import MIN_CLIENT, MIN_SERVICE, client_problem, service_problem


@pytest.mark.parametrize("client", [MIN_CLIENT, "0.2.0", "0.2.0rc1", "3.1", "", "curl", "1", "é.1"])
def test_clients_from_the_minimum_on_and_other_programs_are_served(client):
    assert client_problem(client, "0.2.0") is None


@pytest.mark.parametrize("client", ["0.0.9", "0.0", "0.0.9rc1"])
def test_an_older_client_is_told_both_versions_and_the_minimum(client):
    problem = client_problem(client, "0.2.0")
    assert problem is not None
    assert all(text in problem for text in (client, "0.2.0", MIN_CLIENT))


def test_a_service_of_the_same_minor_version_or_an_older_supported_one_is_no_problem():
    for service in ("0.2.0", "0.2.9", MIN_SERVICE, "", "unknown"):
        assert service_problem(service, "0.2.0") is None


def test_users_learn_of_an_older_and_of_a_newer_service():
    assert "update the stack" in (service_problem("0.0.1", "0.2.0") or "")
    assert "pip install --upgrade" in (service_problem("0.3.0", "0.2.0") or "")
    assert "pip install --upgrade" in (service_problem("1.0.0", "0.2.0") or "")
