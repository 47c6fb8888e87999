"""Writes the shell script that starts a command which a request cannot contain, or that needs its operator.

SageMaker copies the script into the container as an input channel, so the image needs a POSIX shell and no AWS tools.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainmaster.client.hyperpod.environment import ADDRESS
from trainmaster.client.hyperpod.expansion import shell_word

CHANNEL = "trainmaster-command"
SCRIPT = "run.sh"
DIRECTORY = f"/opt/ml/input/data/{CHANNEL}"
ENTRY_POINT = ("/bin/sh", f"{DIRECTORY}/{SCRIPT}")
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_HOSTS = """\
here=$(cd "$(dirname "$0")" && pwd)
config=$(tr -d ' \\n"' < "$here/../../config/resourceconfig.json")
TRAINMASTER_HOST=${config#*current_host:}
TRAINMASTER_HOST=${TRAINMASTER_HOST%%[,\\}]*}
hosts=${config#*hosts:\\[}
hosts=${hosts%%\\]*}
first=${hosts%%,*}
count=0
rank=0
IFS=,
for host in $hosts; do
  if [ "$host" = "$TRAINMASTER_HOST" ]; then rank=$count; fi
  count=$((count + 1))
done
unset IFS
export TRAINMASTER_HOST
"""
"""Reads the hosts of the training job from `resourceconfig.json`, in the order in which SageMaker lists them."""
_RESOLVE = """\
TRAINMASTER_ADDRESS=$(getent hosts "$TRAINMASTER_HOST" | { read -r address _ && echo "$address"; }) || :
export TRAINMASTER_ADDRESS="${TRAINMASTER_ADDRESS:-$TRAINMASTER_HOST}"
"""
"""Resolves the own host; where that is not possible, its name is the address."""
_VARIABLES = {
    "MASTER_ADDR": "$first",
    "PET_MASTER_ADDR": "$first",
    "MASTER_PORT": "${MASTER_PORT:-29500}",
    "PET_MASTER_PORT": "${PET_MASTER_PORT:-${MASTER_PORT:-29500}}",
    "NNODES": "${NNODES:-$count}",
    "PET_NNODES": "${PET_NNODES:-$count}",
    "PET_NODE_RANK": "$rank",
    "RANK": "$rank",
    "JOB_COMPLETION_INDEX": "$rank",
}
_WORLD_SIZE = """\
case ${PET_NPROC_PER_NODE:-1} in
  *[!0-9]*) WORLD_SIZE=${WORLD_SIZE:-$count} ;;
  *) WORLD_SIZE=${WORLD_SIZE:-$((count * ${PET_NPROC_PER_NODE:-1}))} ;;
esac
export WORLD_SIZE
"""
HYPERPODRUN = """\
#!/bin/sh
# Starts torchrun in place of hyperpodrun, without the options that need HyperPod's operator.
before= before_args= after= after_args= script=
left=$#
while [ "$left" -gt 0 ]; do
  word=$1
  shift
  left=$((left - 1))
  if [ -z "$script" ]; then
    name=$(printf '%s' "${word%%=*}" | tr _ -)
    case $name in
      --inprocess-restart) continue ;;
      --shutdown-signal | --shutdown-timeout | --inprocess-timeout | --server-* | --pre-train-* | --post-train-* | \\
        --rdzv-backend)
        case $word in
          *=*) value=${word#*=} ;;
          *)
            value=$1
            shift
            left=$((left - 1))
            ;;
        esac
        case $name in
          --pre-train-script) before=$value ;;
          --pre-train-args) before_args=$value ;;
          --post-train-script) after=$value ;;
          --post-train-args) after_args=$value ;;
          --rdzv-backend) [ "$value" = hyperpod ] || set -- "$@" "--rdzv-backend=$value" ;;
        esac
        continue
        ;;
      -m | --module | --no-python | --run-path | --standalone | --virtual-local-rank | -h | --help) ;;
      -*)
        case $word in
          *=*) ;;
          *)
            set -- "$@" "$word"
            word=$1
            shift
            left=$((left - 1))
            ;;
        esac
        ;;
      *) script=$word ;;
    esac
  fi
  set -- "$@" "$word"
done
if [ -z "$before$after" ]; then exec torchrun "$@"; fi
if [ -n "$before" ]; then $before $before_args || exit; fi
torchrun "$@" || exit
if [ -n "$after" ]; then $after $after_args; fi
"""
_SHIM = """\
bin=$(mktemp -d)
cp "$here/hyperpodrun" "$bin/hyperpodrun"
chmod +x "$bin/hyperpodrun"
PATH=$bin:$PATH
"""


@dataclass(frozen=True, slots=True)
class LaunchScript:
    """Contents of a launch script.

    Attributes:
        argv: the command; its texts can contain references to variables of the container.
        operator_variables: variables of the operator that it sets.
        environment: variables that the request cannot contain.
        directory: working directory; None for that of the image.
        replaces_hyperpodrun: whether `hyperpodrun` is on the path as a program that starts torchrun.
        directories: empty directories to make.
        links: path in the container by channel.
        files: text by path in the container.
    """

    argv: Sequence[str]
    operator_variables: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str | None = None
    replaces_hyperpodrun: bool = False
    directories: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def uploads(self) -> dict[str, str]:
        """Return the texts of the files in the channel by name."""
        found = {SCRIPT: self._script()}
        if self.replaces_hyperpodrun:
            found["hyperpodrun"] = HYPERPODRUN
        return found | {_file_name(index): text for index, text in enumerate(self.files.values())}

    def _script(self) -> str:
        parts = ["#!/bin/sh\n# Written by `trainmaster submit` from a Kubernetes manifest.\nset -e\n", _HOSTS]
        parts += [_RESOLVE] if any(ADDRESS in text for text in (*self.argv, *self.environment.values())) else []
        parts += [f"export {name}={_VARIABLES[name]}\n" for name in self.operator_variables if name in _VARIABLES]
        parts += [_WORLD_SIZE] if "WORLD_SIZE" in self.operator_variables else []
        parts += self._files()
        parts += [_SHIM] if self.replaces_hyperpodrun else []
        plain = {name: text for name, text in self.environment.items() if _SHELL_NAME.fullmatch(name)}
        parts += [f"export {name}={shell_word(text)}\n" for name, text in plain.items()]
        others = [f"{name}={text}" for name, text in self.environment.items() if name not in plain]
        parts += [f"cd {shell_word(self.directory)}\n"] if self.directory is not None else []
        parts += ["set +e\n"]
        argv = [*(["env", *others] if others else []), *self.argv]
        return "".join(parts) + f"exec {' '.join(map(shell_word, argv))}\n"

    def _files(self) -> Iterable[str]:
        for path in self.directories:
            yield f"mkdir -p {shell_word(path)}\n"
        for channel, path in self.links.items():
            word = shell_word(path.rstrip("/"))
            yield f'mkdir -p "$(dirname {word})"\n[ -e {word} ] || ln -s "$here/../"{shell_word(channel)} {word}\n'
        for index, path in enumerate(self.files):
            word = shell_word(path)
            yield f'mkdir -p "$(dirname {word})"\ncp "$here/{_file_name(index)}" {word}\n'


def prefix_of(output_uri: str, files: Mapping[str, str]) -> str:
    """Return the S3 prefix of a script's files below a job's output: the same for the same files."""
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:32]
    return f"{output_uri.rstrip('/')}/{CHANNEL}/{digest}/"


def channel_of(prefix: str) -> dict[str, Any]:
    """Return the input channel of a script."""
    source = {"S3DataType": "S3Prefix", "S3Uri": prefix, "S3DataDistributionType": "FullyReplicated"}
    return {"ChannelName": CHANNEL, "InputMode": "File", "DataSource": {"S3DataSource": source}}


def _file_name(index: int) -> str:
    return f"file{index}"
