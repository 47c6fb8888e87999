"""Warnings about storage, which SageMaker provides by instance type.

The rules are those of `ResourceConfig` (API reference): a type with local storage takes no `VolumeKmsKeyId`, one
without needs a `VolumeSizeInGB`. They are warnings, since EC2 and not SageMaker documents which types have such
storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.capacity.units import Demand, Pool
from trainmaster.domain.requests.fields import part, text, whole
from trainmaster.domain.requests.resources import CONFIG

MAX_NAMED = 3
"""Instance types that a warning names."""


def storage_warnings(
    request: Mapping[str, object], demand: Demand, pools: Mapping[str, Pool], catalogue: Catalogue
) -> Iterator[str]:
    """Return warnings about storage on the types that the job may get.

    Args:
        request: The request.
        demand: Its demand, resolved against the pools.
        pools: Pools in force.
        catalogue: Known instance types.
    """
    config, kinds = part(request, CONFIG), _possible(demand, pools, catalogue)
    local = [kind.name for kind in kinds if kind.storage_gb]
    # An unknown type's storage is unknown too.
    without = [kind.name for kind in kinds if kind.vcpus and not kind.storage_gb]
    if text(config, "VolumeKmsKeyId") and local:
        yield (
            f"VolumeKmsKeyId is not supported by types with local storage such as {_named(local)}: a job on such a "
            "type "
            "fails. The hardware encrypts this storage; omit the key, or request types without local storage."
        )
    if not whole(config, "VolumeSizeInGB") and without:
        yield (
            f"VolumeSizeInGB is missing, and is required by types without local storage such as {_named(without)}: a "
            "job "
            "on such a type may fail. Types with local storage accept it too."
        )


def _possible(demand: Demand, pools: Mapping[str, Pool], catalogue: Catalogue) -> list[InstanceType]:
    """Return the types of all pools that the job could run in; if there is none yet, those that expansion may use."""
    if not demand.alternatives and demand.resources is not None:
        return list(catalogue.covering(demand.resources))
    names = {pools[name].instance_type if name in pools else name for name in demand.pools}
    return [kind for name in sorted(names) if (kind := catalogue.type_of(name)) is not None]


def _named(names: Sequence[str]) -> str:
    return " or ".join(names[:MAX_NAMED])
