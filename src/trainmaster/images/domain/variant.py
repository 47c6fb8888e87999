"""Choice of an image job's variant, made once, when the job enters (guide, "Variant Selection").

The job's name decides instead of a random number, so that repeated calls choose the same variant.
"""

from __future__ import annotations

import hashlib
from itertools import accumulate

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.requests.fields import did_you_mean, shown
from trainmaster.images.domain.endpoint import Endpoint, Variant, has_unknown_variants

_FIELD = "imageProcessorParameters.TargetVariant"


def choose_variant(endpoint: Endpoint, asked: str | None, job: str) -> str:
    """Return the variant for a job's requests: the requested one, the only one, or one chosen by `CurrentWeight`.

    Args:
        endpoint: as last described. A URL has no variants. For an endpoint whose variants are not known yet, the
            requested variant is accepted, and otherwise none is chosen (""): then SageMaker spreads the requests, and
            the endpoint as a whole is the pool.
        asked: `TargetVariant`; None or "" without one.
        job: its name.

    Raises `InvalidRequest` for a variant that the endpoint does not have, for an endpoint that is asynchronous or has
    no variants, and if none of several has a weight.
    """
    if endpoint.http:
        return ""
    if endpoint.asynchronous:
        wrong = f"The endpoint {shown(endpoint.key)} is asynchronous, so it does not answer when a tile is sent."
        hint = "Name a real-time or serverless endpoint of the model."
        raise InvalidRequest(wrong, field="imageProcessor.name", hint=hint)
    if asked:
        return _named(endpoint, asked)
    if has_unknown_variants(endpoint):
        return ""
    if not endpoint.variants:
        wrong = f"The endpoint {shown(endpoint.key)} has no known production variant."
        hint = "Try again once the endpoint is in service."
        raise InvalidRequest(wrong, field="imageProcessor.name", hint=hint)
    if len(endpoint.variants) == 1:
        return endpoint.variants[0].name
    return _by_weight(endpoint, job)


def _named(endpoint: Endpoint, asked: str) -> str:
    """Return the requested variant if the endpoint has it, or if its variants are not known yet."""
    names = [variant.name for variant in endpoint.variants]
    if asked in names or has_unknown_variants(endpoint):
        return asked
    wrong = f"The endpoint {shown(endpoint.key)} has no variant {shown(asked)}."
    meant = did_you_mean(asked, names)
    guess = f"Did you mean '{meant}'? " if meant else ""
    hint = f"{guess}Its variants are: {', '.join(names) or 'none'}. Without TargetVariant one is chosen by its weight."
    raise InvalidRequest(wrong, field=_FIELD, hint=hint)


def _by_weight(endpoint: Endpoint, job: str) -> str:
    weighted: list[Variant] = [variant for variant in endpoint.variants if variant.weight > 0]
    if not weighted:
        wrong = f"No variant of the endpoint {shown(endpoint.key)} has a weight, so none can be chosen."
        hint = "Name a TargetVariant, or give one a weight (UpdateEndpointWeightsAndCapacities)."
        raise InvalidRequest(wrong, field=_FIELD, hint=hint)
    bounds = list(accumulate(variant.weight for variant in weighted))
    point = _part_of(job) * bounds[-1]
    # Rounding may give exactly the upper bound.
    return next(
        (variant.name for variant, bound in zip(weighted, bounds, strict=True) if point < bound), weighted[-1].name
    )


def _part_of(job: str) -> float:
    """Return a number from 0 to less than 1, uniform over names; a float keeps 53 bits."""
    return (int.from_bytes(hashlib.sha256(job.encode()).digest()[:8], "big") >> 11) / (1 << 53)
