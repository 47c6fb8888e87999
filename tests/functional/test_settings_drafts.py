"""The check of a draft without the API's model: it accepts what the API accepts, and names the same field."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given
from test_settings_in_force import WRONG, broken_settings

from any_policies import CAP, policies
from api_world import ApiWorld
from builders import G5, a_pool, pools_of
from samples import examples
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.policy.document import settings_document
from trainmaster.domain.policy.draft import checked_policy
from trainmaster.domain.policy.settings import Policy

POOLS = pools_of(a_pool(cap=CAP), a_pool(G5, CAP))


@pytest.mark.parametrize(("document", "field"), [each for each in WRONG if "version" not in each[0]])
def test_a_wrong_setting_is_refused_by_its_path(document, field):
    with pytest.raises(InvalidRequest) as refused:
        checked_policy(document, pools_of())
    assert refused.value.field == field
    assert refused.value.message


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_invalid_numbers_are_refused_by_their_path(number):
    document = json.loads(f'{{"shares": {{"vision": {{"weight": {number}}}}}}}')
    with pytest.raises(InvalidRequest) as refused:
        checked_policy(document, pools_of())
    assert refused.value.field == "shares.vision.weight"


@examples(60)
@given(policies())
def test_valid_settings_are_read_as_they_are(policy):
    said = json.loads(json.dumps(settings_document(policy)))
    assert checked_policy({**said, "version": 3}, POOLS) == policy


def test_what_a_draft_omits_has_the_given_defaults():
    default = Policy(max_actions=7)
    assert checked_policy({"order": "fifo"}, POOLS, default).max_actions == 7


@examples(100, suppress_health_check=[HealthCheck.too_slow])
@given(broken_settings())
def test_a_draft_is_refused_exactly_if_the_api_refuses_it(document):
    reply = ApiWorld(pools=POOLS).put("/settings", document)
    if reply.status == 200:
        assert reply.body == {**settings_document(checked_policy(document, POOLS)), "version": 1}
        return
    with pytest.raises(InvalidRequest) as refused:
        checked_policy(document, POOLS)
    assert refused.value.field
