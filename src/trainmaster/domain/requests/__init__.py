"""The meaning of a CreateTrainingJob request to the queue: its demand, its options and its problems.

Pure functions over JSON values. The service model is checked before (`adapters/sagemaker/request_model.py`); these
functions accept any JSON object nevertheless and raise nothing but `InvalidRequest`.
"""

from __future__ import annotations

from trainmaster.domain.requests.elastic.bounds import elastic_of
from trainmaster.domain.requests.elastic.resized import member_request, with_instances
from trainmaster.domain.requests.elastic.rules import check_pools, elastic_warnings, form_problems
from trainmaster.domain.requests.fields import Problem, did_you_mean, shown
from trainmaster.domain.requests.option_rules import limit_problems, option_problems
from trainmaster.domain.requests.options import OPTIONS, Options
from trainmaster.domain.requests.pools import demand_in, for_pool, pool_warnings
from trainmaster.domain.requests.resource_text import sendable
from trainmaster.domain.requests.resources import demand_of, named_types, resource_problems
from trainmaster.domain.requests.storage import storage_warnings
from trainmaster.domain.requests.tags import MAX_TAGS, misspelt, option_field, options_of, tag_problems
from trainmaster.domain.requests.training_job import meaning_problems
from trainmaster.domain.requests.warnings import warnings

__all__ = [
    "MAX_TAGS",
    "OPTIONS",
    "Options",
    "Problem",
    "check_pools",
    "demand_in",
    "demand_of",
    "did_you_mean",
    "elastic_of",
    "elastic_warnings",
    "for_pool",
    "form_problems",
    "limit_problems",
    "meaning_problems",
    "member_request",
    "misspelt",
    "named_types",
    "option_field",
    "option_problems",
    "options_of",
    "pool_warnings",
    "resource_problems",
    "sendable",
    "shown",
    "storage_warnings",
    "tag_problems",
    "warnings",
    "with_instances",
]
