"""Write what ships with us of ML instance types: `src/trainmaster/domain/capacity/instance_table.py`.

The types are those that SageMaker's service model lists for training, from the model that we ship (itself cut from
botocore's). What they have is what EC2 says of the type of the same name: moto ships a copy of DescribeInstanceTypes.
`FORMER` has what EC2 no longer says, `instance_prices.csv` the prices. With `--check` it only says whether the file is
what the installed moto gives. It must not guess: what no source says is left out.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import astuple, replace
from importlib import metadata, resources
from pathlib import Path

from trainmaster.adapters.catalogue.ec2 import instance_type
from trainmaster.adapters.sagemaker.service_model import shape
from trainmaster.domain.capacity.resources import InstanceType

TARGET = Path(__file__).parents[1] / "src" / "trainmaster" / "domain" / "capacity" / "instance_table.py"
PRICES = Path(__file__).with_name("instance_prices.csv")
"""Figures on which sources agree that read AWS's price list: `fmbench` 2.1.1 on PyPI, and programs on GitHub that
say when they asked it. p4d and p5 are those of us-west-2 after the cut of June 2025; older figures of them are left
out, and so is trn1, on which the sources differ. Add a row where you have asked the price list yourself.
"""

# EC2 has retired p2 and p3, which moto 4.2 still had in its copy of what EC2 said; the SageMaker SDK's
# `instance_gpu_info.json` has the same accelerators. EC2 gives the GB200 out by whole racks only: AWS's page "Amazon
# EC2 P6e-GB200 UltraServers" has 72 of its GPUs with 13,320 GB, the SageMaker HyperPod CLI its processors and memory.
FORMER = (
    InstanceType(name="ml.p2.xlarge", vcpus=4, memory_gib=61, accelerators=1, accelerator="nvidia",
                 accelerator_memory_gib=12, network_gbps=10),
    InstanceType(name="ml.p2.8xlarge", vcpus=32, memory_gib=488, accelerators=8, accelerator="nvidia",
                 accelerator_memory_gib=96, network_gbps=10),
    InstanceType(name="ml.p2.16xlarge", vcpus=64, memory_gib=732, accelerators=16, accelerator="nvidia",
                 accelerator_memory_gib=192, network_gbps=25),
    InstanceType(name="ml.p3.2xlarge", vcpus=8, memory_gib=61, accelerators=1, accelerator="nvidia",
                 accelerator_memory_gib=16, network_gbps=10),
    InstanceType(name="ml.p3.8xlarge", vcpus=32, memory_gib=244, accelerators=4, accelerator="nvidia",
                 accelerator_memory_gib=64, network_gbps=10),
    InstanceType(name="ml.p3.16xlarge", vcpus=64, memory_gib=488, accelerators=8, accelerator="nvidia",
                 accelerator_memory_gib=128, network_gbps=25),
    InstanceType(name="ml.p6e-gb200.36xlarge", vcpus=144, memory_gib=960, accelerators=4, accelerator="nvidia",
                 accelerator_memory_gib=740),
)  # fmt: skip

TEXT = '''"""The shipped table of ML instance types. Written by `scripts/instance_table.py`; do not edit it by hand.

Sources are SageMaker's list of types for training and EC2's DescribeInstanceTypes (as in moto {moto}). Prices are
on-demand prices of training in us-east-1, in US dollars an hour, as published from AWS's price list until summer 2026
(`scripts/instance_prices.csv`); 0 without such a source. A pool's own price goes before them. A row has a type's
members in their order, without trailing zeros and empty values, and `-` for an empty text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from trainmaster.domain.capacity.resources import InstanceType

_READ: Mapping[str, Callable[[str], Any]] = {{"int": int, "float": float, "str": lambda text: text.replace("-", "")}}
_READERS = [(each.name, _READ[str(each.type)]) for each in fields(InstanceType)][1:]


def _type_of(row: str) -> InstanceType:
    name, *rest = row.split()
    values: dict[str, Any] = {{member: read(text) for (member, read), text in zip(_READERS, rest, strict=False)}}
    return InstanceType(name=f"ml.{{name}}", **values)


_ROWS = """\\
{rows}
"""

SHIPPED: Mapping[str, InstanceType] = {{kind.name: kind for kind in map(_type_of, _ROWS.splitlines())}}
'''


def moto_version() -> str:
    """The moto whose copy of EC2's answer is installed. Raises `PackageNotFoundError` where none is."""
    return metadata.version("moto")


def described() -> dict[str, InstanceType]:
    """All that EC2 describes, by the names that SageMaker would give it."""
    file = resources.files("moto") / "ec2" / "resources" / "instance_types.json.gz"
    kinds = map(instance_type, json.loads(gzip.decompress(file.read_bytes())).values())
    return {kind.name: kind for kind in kinds}


def prices() -> dict[str, float]:
    """US dollars an hour, by type."""
    with PRICES.open(encoding="utf-8", newline="") as file:
        return {row["instance_type"]: float(row["dollars_an_hour"]) for row in csv.DictReader(file)}


def table(names: Iterable[str]) -> Iterator[InstanceType]:
    """Yield the known attributes of each type, in the order of their names; the name alone if nothing is known."""
    known = {**{kind.name: kind for kind in FORMER}, **described()}
    dollars = prices()
    for name in sorted(names):
        yield replace(known.get(name, InstanceType(name=name)), price=dollars.get(name, 0.0))


def render(kinds: Iterable[InstanceType], moto: str) -> str:
    """The file's text, a type a line, so that a change reads as a diff."""
    return TEXT.format(moto=moto, rows="\n".join(map(_row, kinds)))


def _row(kind: InstanceType) -> str:
    values = [value if isinstance(value, str) else f"{value:.10g}" for value in astuple(kind)]
    while values[-1] in ("", "0"):
        values.pop()
    return " ".join(value or "-" for value in values).removeprefix("ml.")


def main(arguments: list[str]) -> int:
    """Write or check the file; 1 where a check finds it different."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the file differs")
    options = parser.parse_args(arguments)
    kinds = list(table(shape("TrainingInstanceType").enum))
    text = render(kinds, moto_version())
    if options.check:
        same = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        print("up to date" if same else f"differs from what moto {moto_version()} gives")
        return 0 if same else 1
    TARGET.write_text(text, encoding="utf-8")
    bare = [kind.name for kind in kinds if not kind.vcpus]
    priced = sum(kind.price > 0 for kind in kinds)
    print(f"{TARGET.name}: {len(kinds)} types, {priced} with a price; nothing known of {bare or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
