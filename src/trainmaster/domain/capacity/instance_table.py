"""The shipped table of ML instance types. Written by `scripts/instance_table.py`; do not edit it by hand.

Sources are SageMaker's list of types for training and EC2's DescribeInstanceTypes (as in moto 5.2.5). Prices are
on-demand prices of training in us-east-1, in US dollars an hour, as published from AWS's price list until summer 2026
(`scripts/instance_prices.csv`); 0 without such a source. A pool's own price goes before them. A row has a type's
members in their order, without trailing zeros and empty values, and `-` for an empty text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from trainmaster.domain.capacity.resources import InstanceType

_READ: Mapping[str, Callable[[str], Any]] = {"int": int, "float": float, "str": lambda text: text.replace("-", "")}
_READERS = [(each.name, _READ[str(each.type)]) for each in fields(InstanceType)][1:]


def _type_of(row: str) -> InstanceType:
    name, *rest = row.split()
    values: dict[str, Any] = {member: read(text) for (member, read), text in zip(_READERS, rest, strict=False)}
    return InstanceType(name=f"ml.{name}", **values)


_ROWS = """\
c4.2xlarge 8 15 0 - 0 10
c4.4xlarge 16 30 0 - 0 10
c4.8xlarge 36 60 0 - 0 10
c4.xlarge 4 7.5 0 - 0 2.8
c5.18xlarge 72 144 0 - 0 25
c5.2xlarge 8 16 0 - 0 10 0 0.408
c5.4xlarge 16 32 0 - 0 10 0 0.816
c5.9xlarge 36 72 0 - 0 12
c5.xlarge 4 8 0 - 0 10 0 0.204
c5n.18xlarge 72 192 0 - 0 100 1
c5n.2xlarge 8 21 0 - 0 25
c5n.4xlarge 16 42 0 - 0 25
c5n.9xlarge 36 96 0 - 0 50 1
c5n.xlarge 4 10.5 0 - 0 25
c6i.12xlarge 48 96 0 - 0 18.75
c6i.16xlarge 64 128 0 - 0 25
c6i.24xlarge 96 192 0 - 0 37.5
c6i.2xlarge 8 16 0 - 0 12.5
c6i.32xlarge 128 256 0 - 0 50 1
c6i.4xlarge 16 32 0 - 0 12.5
c6i.8xlarge 32 64 0 - 0 12.5
c6i.xlarge 4 8 0 - 0 12.5
c7i-flex.12xlarge 48 96 0 - 0 18.75
c7i-flex.16xlarge 64 128 0 - 0 25
c7i-flex.2xlarge 8 16 0 - 0 12.5
c7i-flex.4xlarge 16 32 0 - 0 12.5
c7i-flex.8xlarge 32 64 0 - 0 12.5
c7i-flex.xlarge 4 8 0 - 0 12.5
c7i.12xlarge 48 96 0 - 0 18.75
c7i.16xlarge 64 128 0 - 0 25
c7i.24xlarge 96 192 0 - 0 37.5
c7i.2xlarge 8 16 0 - 0 12.5
c7i.48xlarge 192 384 0 - 0 50 1
c7i.4xlarge 16 32 0 - 0 12.5
c7i.8xlarge 32 64 0 - 0 12.5
c7i.large 2 4 0 - 0 12.5
c7i.xlarge 4 8 0 - 0 12.5
c8i-flex.12xlarge 48 96 0 - 0 22.5
c8i-flex.16xlarge 64 128 0 - 0 30
c8i-flex.2xlarge 8 16 0 - 0 15
c8i-flex.4xlarge 16 32 0 - 0 15
c8i-flex.8xlarge 32 64 0 - 0 15
c8i-flex.xlarge 4 8 0 - 0 12.5
c8i.12xlarge 48 96 0 - 0 22.5
c8i.16xlarge 64 128 0 - 0 30
c8i.24xlarge 96 192 0 - 0 40
c8i.2xlarge 8 16 0 - 0 15
c8i.32xlarge 128 256 0 - 0 50
c8i.48xlarge 192 384 0 - 0 75 1
c8i.4xlarge 16 32 0 - 0 15
c8i.8xlarge 32 64 0 - 0 15
c8i.96xlarge 384 768 0 - 0 100 1
c8i.xlarge 4 8 0 - 0 12.5
g4dn.12xlarge 48 192 4 nvidia 64 50 1 4.89 900
g4dn.16xlarge 64 256 1 nvidia 16 50 1 5.44 900
g4dn.2xlarge 8 32 1 nvidia 16 25 0 0.94 225
g4dn.4xlarge 16 64 1 nvidia 16 25 0 1.505 225
g4dn.8xlarge 32 128 1 nvidia 16 50 1 2.72 900
g4dn.xlarge 4 16 1 nvidia 16 25 0 0.7364 125
g5.12xlarge 48 192 4 nvidia 89.41 40 1 7.09 3800
g5.16xlarge 64 256 1 nvidia 22.35 25 1 5.12 1900
g5.24xlarge 96 384 4 nvidia 89.41 50 1 10.18 3800
g5.2xlarge 8 32 1 nvidia 22.35 10 0 1.515 450
g5.48xlarge 192 768 8 nvidia 178.81 100 1 20.36 7600
g5.4xlarge 16 64 1 nvidia 22.35 25 0 2.03 600
g5.8xlarge 32 128 1 nvidia 22.35 25 1 3.06 900
g5.xlarge 4 16 1 nvidia 22.35 10 0 1.408 250
g6.12xlarge 48 192 4 nvidia 89.41 40 1 5.752 3760
g6.16xlarge 64 256 1 nvidia 22.35 25 1 4.246 1880
g6.24xlarge 96 384 4 nvidia 89.41 50 1 8.344 3760
g6.2xlarge 8 32 1 nvidia 22.35 10 0 1.222 450
g6.48xlarge 192 768 8 nvidia 178.81 100 1 16.688 7520
g6.4xlarge 16 64 1 nvidia 22.35 25 0 1.654 600
g6.8xlarge 32 128 1 nvidia 22.35 25 1 2.518 900
g6.xlarge 4 16 1 nvidia 22.35 10 0 1.127 250
g6e.12xlarge 48 384 4 nvidia 178.81 100 1 13.12 3800
g6e.16xlarge 64 512 1 nvidia 44.7 35 1 0 1900
g6e.24xlarge 96 768 4 nvidia 178.81 200 2 18.83 3800
g6e.2xlarge 8 64 1 nvidia 44.7 20 0 2.8 450
g6e.48xlarge 192 1536 8 nvidia 357.62 400 4 37.66 7600
g6e.4xlarge 16 128 1 nvidia 44.7 20 0 3.76 600
g6e.8xlarge 32 256 1 nvidia 44.7 25 1 5.66 900
g6e.xlarge 4 32 1 nvidia 44.7 20 0 2.61 250
g7.12xlarge 48 192 2 nvidia 64 175 1 0 1900
g7.24xlarge 96 384 4 nvidia 128 350 1 0 3800
g7.2xlarge 8 32 1 nvidia 32 60 0 0 440
g7.48xlarge 192 768 8 nvidia 256 700 2 0 7600
g7.4xlarge 16 64 1 nvidia 32 100 0 0 875
g7.8xlarge 32 128 1 nvidia 32 100 1 0 930
g7e.12xlarge 48 512 2 nvidia 192 400 1 10.3576 3800
g7e.24xlarge 96 1024 4 nvidia 384 800 2 0 7600
g7e.2xlarge 8 64 1 nvidia 96 50 0 4.2039 1900
g7e.48xlarge 192 2048 8 nvidia 768 1600 4 0 15200
g7e.4xlarge 16 128 1 nvidia 96 50 0 4.9977 1900
g7e.8xlarge 32 256 1 nvidia 96 100 1 0 1900
m4.10xlarge 40 160 0 - 0 10
m4.16xlarge 64 256 0 - 0 25
m4.2xlarge 8 32 0 - 0 10
m4.4xlarge 16 64 0 - 0 10
m4.xlarge 4 16 0 - 0 2.8
m5.12xlarge 48 192 0 - 0 12 0 2.765
m5.24xlarge 96 384 0 - 0 25 0 5.53
m5.2xlarge 8 32 0 - 0 10 0 0.461
m5.4xlarge 16 64 0 - 0 10 0 0.922
m5.large 2 8 0 - 0 10 0 0.115
m5.xlarge 4 16 0 - 0 10 0 0.23
m6i.12xlarge 48 192 0 - 0 18.75
m6i.16xlarge 64 256 0 - 0 25
m6i.24xlarge 96 384 0 - 0 37.5
m6i.2xlarge 8 32 0 - 0 12.5
m6i.32xlarge 128 512 0 - 0 50 1
m6i.4xlarge 16 64 0 - 0 12.5
m6i.8xlarge 32 128 0 - 0 12.5
m6i.large 2 8 0 - 0 12.5
m6i.xlarge 4 16 0 - 0 12.5
m7i-flex.12xlarge 48 192 0 - 0 18.75
m7i-flex.16xlarge 64 256 0 - 0 25
m7i-flex.2xlarge 8 32 0 - 0 12.5
m7i-flex.4xlarge 16 64 0 - 0 12.5
m7i-flex.8xlarge 32 128 0 - 0 12.5
m7i-flex.large 2 8 0 - 0 12.5
m7i-flex.xlarge 4 16 0 - 0 12.5
m7i.12xlarge 48 192 0 - 0 18.75
m7i.16xlarge 64 256 0 - 0 25
m7i.24xlarge 96 384 0 - 0 37.5
m7i.2xlarge 8 32 0 - 0 12.5
m7i.48xlarge 192 768 0 - 0 50 1
m7i.4xlarge 16 64 0 - 0 12.5
m7i.8xlarge 32 128 0 - 0 12.5
m7i.large 2 8 0 - 0 12.5
m7i.xlarge 4 16 0 - 0 12.5
m8i-flex.12xlarge 48 192 0 - 0 22.5
m8i-flex.16xlarge 64 256 0 - 0 30
m8i-flex.2xlarge 8 32 0 - 0 15
m8i-flex.4xlarge 16 64 0 - 0 15
m8i-flex.8xlarge 32 128 0 - 0 15
m8i-flex.large 2 8 0 - 0 12.5
m8i-flex.xlarge 4 16 0 - 0 12.5
m8i.12xlarge 48 192 0 - 0 22.5
m8i.16xlarge 64 256 0 - 0 30
m8i.24xlarge 96 384 0 - 0 40
m8i.2xlarge 8 32 0 - 0 15
m8i.32xlarge 128 512 0 - 0 50
m8i.48xlarge 192 768 0 - 0 75 1
m8i.4xlarge 16 64 0 - 0 15
m8i.8xlarge 32 128 0 - 0 15
m8i.96xlarge 384 1536 0 - 0 100 1
m8i.large 2 8 0 - 0 12.5
m8i.xlarge 4 16 0 - 0 12.5
p2.16xlarge 64 732 16 nvidia 192 25
p2.8xlarge 32 488 8 nvidia 96 10
p2.xlarge 4 61 1 nvidia 12 10
p3.16xlarge 64 488 8 nvidia 128 25 0 28.152
p3.2xlarge 8 61 1 nvidia 16 10 0 3.825
p3.8xlarge 32 244 4 nvidia 64 10 0 14.688
p3dn.24xlarge 96 768 8 nvidia 256 100 1 35.894 1800
p4d.24xlarge 96 1152 8 nvidia 320 400 4 25.251286 8000
p4de.24xlarge 96 1152 8 nvidia 640 400 4 0 8000
p5.48xlarge 192 2048 8 nvidia 640 3200 32 63.296 30400
p5.4xlarge 16 256 1 nvidia 80 100 1 0 3800
p5e.48xlarge 192 2048 8 nvidia 1128 3200 32 0 30400
p5en.48xlarge 192 2048 8 nvidia 1128 3200 16 0 30400
p6-b200.48xlarge 192 2048 8 nvidia 1432.49 3200 8 0 30400
p6-b300.48xlarge 192 4096 8 nvidia 2148.75 6400 16 0 30400
p6e-gb200.36xlarge 144 960 4 nvidia 740
r5.12xlarge 48 384 0 - 0 12
r5.16xlarge 64 512 0 - 0 20
r5.24xlarge 96 768 0 - 0 25
r5.2xlarge 8 64 0 - 0 10
r5.4xlarge 16 128 0 - 0 10
r5.8xlarge 32 256 0 - 0 10
r5.large 2 16 0 - 0 10
r5.xlarge 4 32 0 - 0 10
r5d.12xlarge 48 384 0 - 0 12 0 0 1800
r5d.16xlarge 64 512 0 - 0 20 0 0 2400
r5d.24xlarge 96 768 0 - 0 25 0 0 3600
r5d.2xlarge 8 64 0 - 0 10 0 0 300
r5d.4xlarge 16 128 0 - 0 10 0 0 600
r5d.8xlarge 32 256 0 - 0 10 0 0 1200
r5d.large 2 16 0 - 0 10 0 0 75
r5d.xlarge 4 32 0 - 0 10 0 0 150
r6i.12xlarge 48 384 0 - 0 18.75
r6i.16xlarge 64 512 0 - 0 25
r6i.24xlarge 96 768 0 - 0 37.5
r6i.2xlarge 8 64 0 - 0 12.5
r6i.32xlarge 128 1024 0 - 0 50 1
r6i.4xlarge 16 128 0 - 0 12.5
r6i.8xlarge 32 256 0 - 0 12.5
r6i.large 2 16 0 - 0 12.5
r6i.xlarge 4 32 0 - 0 12.5
r7i.12xlarge 48 384 0 - 0 18.75
r7i.16xlarge 64 512 0 - 0 25
r7i.24xlarge 96 768 0 - 0 37.5
r7i.2xlarge 8 64 0 - 0 12.5
r7i.48xlarge 192 1536 0 - 0 50 1
r7i.4xlarge 16 128 0 - 0 12.5
r7i.8xlarge 32 256 0 - 0 12.5
r7i.large 2 16 0 - 0 12.5
r7i.xlarge 4 32 0 - 0 12.5
r8i-flex.12xlarge 48 384 0 - 0 22.5
r8i-flex.16xlarge 64 512 0 - 0 30
r8i-flex.2xlarge 8 64 0 - 0 15
r8i-flex.4xlarge 16 128 0 - 0 15
r8i-flex.8xlarge 32 256 0 - 0 15
r8i-flex.large 2 16 0 - 0 12.5
r8i-flex.xlarge 4 32 0 - 0 12.5
r8i.12xlarge 48 384 0 - 0 22.5
r8i.16xlarge 64 512 0 - 0 30
r8i.24xlarge 96 768 0 - 0 40
r8i.2xlarge 8 64 0 - 0 15
r8i.32xlarge 128 1024 0 - 0 50
r8i.48xlarge 192 1536 0 - 0 75 1
r8i.4xlarge 16 128 0 - 0 15
r8i.8xlarge 32 256 0 - 0 15
r8i.96xlarge 384 3072 0 - 0 100 1
r8i.large 2 16 0 - 0 12.5
r8i.xlarge 4 32 0 - 0 12.5
t3.2xlarge 8 32 0 - 0 5
t3.large 2 8 0 - 0 5
t3.medium 2 4 0 - 0 5
t3.xlarge 4 16 0 - 0 5
trn1.2xlarge 8 32 1 aws 32 12.5 0 0 474
trn1.32xlarge 128 512 16 aws 512 800 8 0 7600
trn1n.32xlarge 128 512 16 aws 512 1600 16 0 7600
trn2.48xlarge 192 2048 16 aws 1536 3200 16 0 7600
"""

SHIPPED: Mapping[str, InstanceType] = {kind.name: kind for kind in map(_type_of, _ROWS.splitlines())}
