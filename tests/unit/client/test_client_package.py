"""Cost and contents of `import trainmaster`."""

import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import trainmaster
from trainmaster.client.sdk.session import SdkMissing, module_for

ROOT = Path(__file__).parents[3]


def test_the_version_is_the_packages() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in config["project"]["dynamic"]
    source = (ROOT / config["tool"]["hatch"]["version"]["path"]).read_text()
    assert f'VERSION = "{trainmaster.__version__}"' in source


def test_importing_is_light() -> None:
    code = (
        "import sys, trainmaster; dir(trainmaster); from trainmaster import ApiClient; "
        "print(sorted({'boto3', 'botocore', 'sagemaker', 'pydantic'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_all_public_names_are_listed_and_others_are_missing() -> None:
    assert {
        "ApiClient",
        "ElasticOptions",
        "QueueSession",
        "TrainingQueue",
        "route_batch",
        "route_to_queue",
        "__version__",
    } <= set(dir(trainmaster))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = trainmaster.Nothing  # type: ignore[attr-defined]


def test_a_training_queue_needs_an_sdk_that_has_one() -> None:
    assert find_spec("sagemaker") is None, "this environment has no SDK"
    with pytest.raises(SdkMissing, match=r"pip install 'trainmaster\[sdk3\]'"):
        _ = trainmaster.TrainingQueue


def test_each_sdk_has_its_session() -> None:
    assert module_for("2.257.7") == "trainmaster.client.sdk.v2"
    assert module_for("3.27.0") == "trainmaster.client.sdk.v3"


@pytest.mark.parametrize("installed", [None, "1.72.0", "4.0.0"])
def test_without_an_sdk_it_says_what_to_install(installed: str | None) -> None:
    with pytest.raises(SdkMissing, match=r"pip install 'trainmaster\[sdk2\]'"):
        module_for(installed)
