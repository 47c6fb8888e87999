from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.torch import entry
from trainmaster.worker.torch.torchrun import make_identity, make_settings


def an_identity(address="10.0.0.7", configuration=None, environ=None):
    return make_identity(address, "bert", configuration or {}, environ or {}, random.Random(1))


def test_bounds_are_those_of_nnodes_whatever_the_environment_says():
    settings = make_settings(2, 6, {}, {"TRAINMASTER_MIN": "1", "TRAINMASTER_MAX": "9", "TRAINMASTER_SIZES": "2,4,6"})
    assert (settings.min_nodes, settings.max_nodes, settings.sizes) == (2, 6, (2, 4, 6))


def test_settings_have_the_names_of_torch_and_other_timeouts_are_ignored():
    options = {"keep_alive_interval": "0.5", "keep_alive_max_attempt": "6", "last_call_timeout": "1", "timeout": 900}
    ours = make_settings(1, 2, options, {})
    assert ours == make_settings(1, 2, options | {"heartbeat_timeout": "5"}, {})
    assert (ours.keep_alive_interval, ours.keep_alive_max_attempt, ours.last_call_timeout) == (0.5, 6, 1.0)


def test_a_grace_of_the_options_is_also_how_long_stragglers_are_waited_for():
    told, said = make_settings(1, 2, {"grace": "90"}, {}), make_settings(1, 2, {}, {"TRAINMASTER_GRACE": "90"})
    assert told == said
    assert told.straggler_timeout > told.grace == 90.0


@pytest.mark.parametrize(
    ("configuration", "field"),
    [
        ({"keepalive": "1"}, "keepalive"),
        ({"min_nodes": "1"}, "min_nodes"),
        ({"keep_alive_interval": "soon"}, "keep_alive_interval"),
        ({"keep_alive_max_attempt": "2.5"}, "keep_alive_max_attempt"),
        ({"keep_alive_max_attempt": "1"}, "keep_alive_max_attempt"),
        ({"join_poll_interval": "0"}, "join_poll_interval"),
        ({"close_timeout": "0"}, "close_timeout"),
        ({"join_timeout": "0"}, "join_timeout"),
        ({"join_timeout": "-600"}, "join_timeout"),
        ({"join_timeout": "nan"}, "join_timeout"),
        ({"last_call_timeout": "-5"}, "last_call_timeout"),
        ({"keep_alive_interval": "0"}, "keep_alive_interval"),
        ({"straggler_timeout": "-1"}, "straggler_timeout"),
        ({"cas_backoff_max_seconds": "-0.1"}, "cas_backoff_max_seconds"),
        ({"cas_backoff_max_seconds": "inf"}, "cas_backoff_max_seconds"),
    ],
)
def test_an_option_that_means_nothing_is_refused_by_its_name(configuration, field):
    with pytest.raises(InvalidRequest) as refused:
        make_settings(1, 2, configuration, {})
    assert refused.value.field == field


def test_a_node_is_what_sagemaker_says(tmp_path):
    config = tmp_path / "input" / "config"
    config.mkdir(parents=True)
    said = {"current_host": "algo-2", "hosts": ["algo-1", "algo-2"], "network_interface_name": "eth0"}
    (config / "resourceconfig.json").write_text(json.dumps(said))
    me = an_identity(environ={"TRAINING_JOB_NAME": "bert-m1", "SM_BASE_DIR": str(tmp_path)})
    assert (me.training_job_name, me.host, me.addr, me.slots) == ("bert-m1", "algo-2", "10.0.0.7", 1)


def test_outside_of_sagemaker_it_is_its_run_and_its_address():
    me = an_identity(environ={"SM_BASE_DIR": "/nonexistent"})
    assert (me.training_job_name, me.host) == ("bert", "10.0.0.7")


def test_options_override_the_identity():
    me = an_identity(configuration={"job": "a", "host": "b", "slots": "8"}, environ={"TRAINING_JOB_NAME": "c"})
    assert (me.training_job_name, me.host, me.slots) == ("a", "b", 8)


def test_a_node_without_an_address_is_refused_rather_than_called_algo_1():
    with pytest.raises(InvalidRequest, match="local-addr"):
        an_identity(address=None)


def test_what_torch_loads_everywhere_imports_nothing_of_weight():
    code = (
        "import sys; before = set(sys.modules)\n"
        "from trainmaster.worker.torch.entry import creator\n"
        "assert callable(creator())\n"
        "print(sorted({name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['trainmaster']"
    assert entry.creator() is entry.create


def test_a_container_needs_boto3_alone():
    """And torch, for torchrun; whatever else the package needs on a desk is for the client."""
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in {'httpx', 'rich', 'tabulate', 'typer', 'pydantic', 'yaml', 'torch'}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import trainmaster.worker.container.run, trainmaster.worker.rendezvous.rendezvous\n"
        "import trainmaster.worker.rendezvous.dynamodb\n"
        "import trainmaster.worker.torch.entry, trainmaster.worker.torch.torchrun\n"
        "import trainmaster.worker.checkpoints.stop_grace\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
