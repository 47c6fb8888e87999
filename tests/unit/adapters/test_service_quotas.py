"""Quotas for training jobs among all others of SageMaker; scripted, since moto knows only those of VPCs."""

from __future__ import annotations

import pytest

from aws_clients import scripted
from builders import G5, P5
from trainmaster.adapters.catalogue.service_quotas import ServiceQuotas
from trainmaster.domain.errors import NotPermitted, Throttled, Unavailable

ASKED = {"ServiceCode": "sagemaker", "MaxResults": 100}


@pytest.fixture
def script():
    with scripted("service-quotas") as script:
        yield script


def quota(name, value):
    return {"ServiceCode": "sagemaker", "QuotaName": name, "Value": value}


def test_only_quotas_for_training_jobs_count(script):
    quotas = [
        quota(f"{P5} for training job usage", 2.0),
        quota(f"{P5} for spot training job usage", 7.0),
        quota(f"{P5} for training warm pool usage", 5.0),
        quota(f"{P5} for endpoint usage", 9.0),
        quota("Number of instances across all training jobs", 20.0),
        quota("ml.trn1.32xlarge for training job usage", 0.0),
        {"ServiceCode": "sagemaker", "QuotaName": "ml.g4dn.xlarge for training job usage"},
        {"ServiceCode": "sagemaker"},
    ]
    script.add_response("list_service_quotas", {"Quotas": quotas, "NextToken": "t"}, ASKED)
    more = {"Quotas": [quota(f"{G5} for training job usage", 8.0)]}
    script.add_response("list_service_quotas", more, {**ASKED, "NextToken": "t"})
    assert ServiceQuotas(lambda: script.client).quotas() == {P5: 2, "ml.trn1.32xlarge": 0, G5: 8}
    script.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("AccessDeniedException", NotPermitted),
        ("TooManyRequestsException", Throttled),
        ("ServiceException", Unavailable),
        ("NoSuchResourceException", Unavailable),
    ],
)
def test_errors_become_domain_errors(script, code, error):
    script.add_client_error("list_service_quotas", code, "no", 400)
    with pytest.raises(error, match=code):
        ServiceQuotas(lambda: script.client).quotas()
