"""The condition keys of a CreateTrainingJob request, as the service authorization reference lists them."""

from __future__ import annotations

from builders import P5, a_request
from trainmaster.domain.access.create_context import create_contexts

REGION = "eu-west-1"


def contexts(**members):
    return list(create_contexts(a_request("a", **members), REGION))


def test_a_plain_request_states_its_defaults():
    (found,) = contexts(Tags=[], StoppingCondition={})
    assert found == {
        "aws:CalledVia": ["trainmaster"],
        "aws:RequestedRegion": [REGION],
        "aws:SecureTransport": ["true"],
        "sagemaker:EnableRemoteDebug": ["false"],
        "sagemaker:InstanceTypes": [P5],
        "sagemaker:InterContainerTrafficEncryption": ["false"],
        "sagemaker:MaxRuntimeInSeconds": ["86400"],
        "sagemaker:NetworkIsolation": ["false"],
    }


def test_every_member_with_a_key_is_in_it():
    groups = [
        {"InstanceGroupName": "a", "InstanceType": "ml.g5.xlarge", "InstanceCount": 1},
        {"InstanceGroupName": "b", "InstanceType": P5, "InstanceCount": 2},
    ]
    (found,) = contexts(
        ResourceConfig={"InstanceGroups": groups, "KeepAlivePeriodInSeconds": 600, "VolumeKmsKeyId": "v"},
        OutputDataConfig={"S3OutputPath": "s3://a", "KmsKeyId": "o"},
        VpcConfig={"Subnets": ["s1", "s2"], "SecurityGroupIds": ["g"]},
        EnableNetworkIsolation=True,
        EnableInterContainerTrafficEncryption=True,
        RemoteDebugConfig={"EnableRemoteDebug": True},
        StoppingCondition={"MaxRuntimeInSeconds": 60},
        Tags=[{"Key": "team", "Value": "vision"}, {"Key": "trainmaster:share", "Value": "a"}],
    )
    assert {key: found[key] for key in sorted(found) if not key.startswith("aws:")} == {
        "sagemaker:EnableRemoteDebug": ["true"],
        "sagemaker:InstanceTypes": ["ml.g5.xlarge", P5],
        "sagemaker:InterContainerTrafficEncryption": ["true"],
        "sagemaker:KeepAlivePeriod": ["600"],
        "sagemaker:MaxRuntimeInSeconds": ["60"],
        "sagemaker:NetworkIsolation": ["true"],
        "sagemaker:OutputKmsKey": ["o"],
        "sagemaker:OutputKmsKeyArn": ["o"],
        "sagemaker:VolumeKmsKey": ["v"],
        "sagemaker:VolumeKmsKeyArn": ["v"],
        "sagemaker:VpcSecurityGroupIds": ["g"],
        "sagemaker:VpcSubnets": ["s1", "s2"],
    }
    assert (found["aws:RequestTag/team"], found["aws:TagKeys"]) == (["vision"], ["team"]), (
        "the queue's tags are not its"
    )


def test_each_file_system_is_a_context_of_its_own():
    def channel(name, path):
        source = {"FileSystemId": "fs-1", "FileSystemType": "EFS", "FileSystemAccessMode": "ro", "DirectoryPath": path}
        return {"ChannelName": name, "DataSource": {"FileSystemDataSource": source}}

    found = contexts(InputDataConfig=[channel("a", "/a"), channel("b", "/b"), channel("c", "/b")])
    assert [each["sagemaker:FileSystemDirectoryPath"] for each in found] == [["/a"], ["/b"]]
    assert found[0]["sagemaker:FileSystemId"] == ["fs-1"]
    assert (found[0]["sagemaker:FileSystemType"], found[0]["sagemaker:FileSystemAccessMode"]) == (["EFS"], ["ro"])
