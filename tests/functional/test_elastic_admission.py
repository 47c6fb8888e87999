"""Elastic jobs at the door: the job that comes of a request, what is refused with its field, and the advice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from builders import ADA, G5, NOW, P5, a_request, pools_of
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.client.hyperpod.manifest import convert_manifest
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Kind, Pool
from trainmaster.domain.elastic.sizes import Elastic, Hook
from trainmaster.domain.errors import InvalidRequest, NeverFits
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.policy import Admission, AdmissionPolicy

DOOR = AdmissionPolicy(shape_problems=problems, rules=CallerRules(allowed_roles=("*",)))
POOLS = pools_of(Pool(P5, 8), Pool(G5, 4), Pool("spot", 8, type_=P5, kind=Kind.SPOT))
VPC = {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}


def asking(count: int = 2, members: Any = (), config: Any = (), **texts: str) -> dict[str, Any]:
    options = {name.replace("_", "-"): text for name, text in texts.items()}
    request = a_request(count=count, options={"preemptible": "false"} | options)
    request["ResourceConfig"] |= dict(config)
    return request | dict(members)


def admitted(request: dict[str, Any]) -> Admission:
    return DOOR.admit(request, ADA, POOLS, NOW)


class TestTheJob:
    def test_asks_for_its_least_size_whatever_its_request_has(self):
        job = admitted(asking(4, min_instances="2", max_instances="8", instance_step="2")).job
        assert job.elastic == Elastic(min_instances=2, max_instances=8, step=2)
        assert job.demand == Demand(({P5: 2},))

    def test_another_job_is_not_elastic(self):
        assert admitted(asking(2)).job.elastic is None

    def test_asks_so_of_every_pool_that_it_names(self):
        job = admitted(asking(4, min_instances="1", max_instances="8", pools=f"{P5} {G5}")).job
        assert job.demand == Demand(({P5: 1}, {G5: 1}), queue_selects_pool=True)

    def test_asks_so_of_all_that_has_its_resources(self):
        job = admitted(asking(2, min_instances="1", max_instances="4", resources="accelerators=1")).job
        expected = Demand(
            ({P5: 1}, {G5: 1}), queue_selects_pool=True, resources=Resources(accelerators=1), instances=1, listed=1
        )
        assert job.demand == expected

    def test_needs_room_for_its_least_size_only(self):
        assert admitted(asking(2, max_instances="100")).job.elastic
        with pytest.raises(NeverFits):
            admitted(asking(9, max_instances="100"))

    def test_whose_members_come_and_go_is_taken_to_write_its_checkpoints_itself(self):
        members = asking(1, {"VpcConfig": VPC}, max_instances="2", resize_by="members")
        restart = asking(1, max_instances="2")
        for request in (members, restart):
            request.pop("CheckpointConfig", None)
        assert admitted(members).job.checkpointed
        assert not admitted(restart).job.checkpointed


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (asking(2, max_instances="1"), "Tags[1].Value"),
        (asking(3, max_instances="8", min_instances="2", instance_step="2"), "ResourceConfig.InstanceCount"),
        (asking(2, scaling_timeout="60"), "Tags[1].Value"),
        (asking(2, max_instances="4", resize_by="members"), "VpcConfig"),
        (
            asking(2, {"VpcConfig": VPC}, max_instances="4", resize_by="members", pools=f"{P5} spot"),
            "Tags[3].Value",
        ),
        (asking(2, max_instances="4", graceful_shutdown_timeout="5h"), "Tags[2].Value"),
    ],
)
def test_violations_are_rejected_with_their_field(request_, field):
    with pytest.raises(InvalidRequest) as refused:
        admitted(request_)
    assert refused.value.field == field
    assert refused.value.hint


def test_a_manifest_of_hyperpods_is_let_in_as_an_elastic_job():
    pod = {"nodeSelector": {"node.kubernetes.io/instance-type": P5}, "containers": [{"image": "image:1"}]}
    manifest = {
        "apiVersion": "sagemaker.amazonaws.com/v1",
        "kind": "HyperPodPyTorchJob",
        "metadata": {"name": "llama"},
        "spec": {
            "elasticPolicy": {"minReplicas": 1, "replicaDiscreteValues": [1, 2, 8], "scalingTimeoutInSeconds": 90},
            "replicaSpecs": [{"replicas": 2, "template": {"spec": pod}}],
        },
    }
    base = {name: a_request()[name] for name in ("RoleArn", "OutputDataConfig")}
    job = admitted(convert_manifest(manifest, base).request).job
    assert job.elastic == Elastic(
        min_instances=1, max_instances=8, values=(1, 2, 8), scaling_timeout=timedelta(seconds=90)
    )
    assert job.demand == Demand(({P5: 1},))


class TestAdvice:
    def warned(self, request: dict[str, Any]) -> str:
        return "\n".join(admitted(request).warnings)

    def test_a_job_that_restarts_wants_checkpoints(self):
        request = asking(2, max_instances="4")
        assert self.warned(request) == ""
        del request["CheckpointConfig"]
        assert "so it would start over each time" in self.warned(request)

    def test_members_are_not_told_to_have_sagemaker_copy_their_checkpoints(self):
        request = asking(2, {"VpcConfig": VPC}, max_instances="4", resize_by="members", preemptible="true")
        del request["CheckpointConfig"]
        told = self.warned(request)
        assert "unless its script writes checkpoints to S3 or a shared file system by itself" in told
        assert "set CheckpointConfig" not in told

    def test_no_more_time_to_save_than_sagemaker_gives(self):
        assert "120 seconds" in self.warned(asking(2, max_instances="4", graceful_shutdown_timeout="10m"))
        assert self.warned(asking(2, max_instances="4", graceful_shutdown_timeout="2m")) == ""

    def test_restarts_are_counted_where_nodes_meet(self):
        bound = {"max_instances": "4", "max_total_restarts": "3"}
        assert "limits on them have no effect" in self.warned(asking(2, **bound))
        assert "limits on them" not in self.warned(asking(2, {"VpcConfig": VPC}, resize_by="members", **bound))

    def test_one_size_is_never_resized(self):
        assert "it is never resized" in self.warned(asking(2, max_instances="2"))

    def test_it_grows_as_far_as_its_pool_goes(self):
        told = self.warned(asking(2, instance_values="2+6+16"))
        assert told == "Only sizes up to 6 of 2, 6 or 16 fit into the pool, whose cap is 8."

    def test_members_may_run_on_demand_in_pools_that_the_queue_chooses(self):
        job = admitted(asking(2, {"VpcConfig": VPC}, max_instances="4", resize_by="members", pools=f"{P5} {G5}")).job
        assert job.elastic is not None
        assert job.elastic.hook is Hook.MEMBERS

    @pytest.mark.parametrize(
        ("members", "words"),
        [
            ({}, "SageMaker syncs checkpoints only for this job's base"),
            ({}, "MaxRuntimeInSeconds (3600) applies to each member"),
            ({"EnableInterContainerTrafficEncryption": True}, "not between members"),
            ({"VpcConfig": VPC | {"Subnets": ["subnet-1", "subnet-2"]}}, "specify one subnet"),
            (
                {
                    "InputDataConfig": [
                        {
                            "ChannelName": "train",
                            "DataSource": {
                                "S3DataSource": {
                                    "S3DataType": "S3Prefix",
                                    "S3Uri": "s3://bucket/data",
                                    "S3DataDistributionType": "ShardedByS3Key",
                                }
                            },
                        }
                    ]
                },
                "InputDataConfig[0] is ShardedByS3Key",
            ),
        ],
    )
    def test_members_differ_from_one_training_job(self, members, words):
        request = asking(2, {"VpcConfig": VPC} | members, max_instances="4", resize_by="members")
        told = self.warned(request)
        assert words in told
        assert "begin again" not in told
