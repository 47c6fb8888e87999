"""What ships with us of ML instance types. Written by `scripts/instance_table.py`; do not edit it by hand."""

from __future__ import annotations

from collections.abc import Mapping

from trainmaster.domain.resources import InstanceType

SHIPPED: Mapping[str, InstanceType] = {}
