"""Warnings about storage: keys that local storage does not take, volumes that other types need."""

from __future__ import annotations

import pytest

from builders import G5, P5, a_request, pools_of
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.requests.pools import demand_in
from trainmaster.domain.requests.storage import storage_warnings
from trainmaster.domain.requests.tags import options_of

CPU = "ml.c5.xlarge"
POOLS = pools_of(Pool(P5, 1), Pool("cpus", 2, type_=CPU))
KEY = {"VolumeKmsKeyId": "1234abcd"}
SIZE = {"VolumeSizeInGB": 30}


def told(resources="", kind="", pools=POOLS, **config):
    request = a_request(options={"resources": resources} if resources else {})
    request["ResourceConfig"] = config | ({"InstanceType": kind, "InstanceCount": 1} if kind else {})
    demand = demand_in(request, (), pools, options_of(request).resources)
    said = list(storage_warnings(request, demand, pools, Catalogue()))
    return [line.partition(" ")[0] for line in said], " ".join(said)


@pytest.mark.parametrize(
    ("config", "warned_of"),
    [
        ({"kind": P5, **KEY, **SIZE}, ["VolumeKmsKeyId"]),
        ({"kind": CPU, **KEY, **SIZE}, []),
        ({"kind": CPU, **KEY}, ["VolumeSizeInGB"]),
        ({"kind": P5}, []),
        ({"kind": "ml.x9.large", **KEY}, []),
        ({"resources": "accelerators=8", **KEY}, ["VolumeKmsKeyId"]),
        ({"resources": "vcpus=4"}, ["VolumeSizeInGB"]),
        ({"resources": "vcpus=4", **KEY}, ["VolumeKmsKeyId", "VolumeSizeInGB"]),
        ({"resources": "vcpus=4", **SIZE}, []),
        ({"resources": "accelerators=4", "pools": pools_of(Pool(CPU, 1)), **KEY, **SIZE}, ["VolumeKmsKeyId"]),
    ],
)
def test_is_warned_of_on_the_types_that_the_job_may_get(config, warned_of):
    assert told(**config)[0] == warned_of


def test_names_the_types_that_it_is_about():
    assert f"such as {P5}:" in told("vcpus=4", **KEY)[1]
    assert f"such as {CPU}:" in told("vcpus=4", **KEY)[1]
    assert G5 not in told("vcpus=4", **KEY)[1]
