"""Parts of requests for the tests of what requests mean. It must not hold tests."""

from __future__ import annotations

from typing import Any

from builders import P5, a_request
from trainmaster.domain.requests.fields import Problem


def resources(**config: Any) -> dict[str, Any]:
    return a_request(ResourceConfig={"VolumeSizeInGB": 30} | config)


def a_group(name: str, instance_type: str = P5, count: int = 1) -> dict[str, Any]:
    return {"InstanceGroupName": name, "InstanceType": instance_type, "InstanceCount": count}


def a_channel(name: str, *groups: str) -> dict[str, Any]:
    source: dict[str, Any] = {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/data"}
    if groups:
        source["InstanceGroupNames"] = list(groups)
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}}


def tagged(*tags: tuple[str, str]) -> dict[str, Any]:
    return a_request(Tags=[{"Key": key, "Value": value} for key, value in tags])


def fields(problems: list[Problem]) -> list[str]:
    return [problem.field for problem in problems]
