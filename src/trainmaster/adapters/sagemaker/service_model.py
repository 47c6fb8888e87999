"""SageMaker's service model, cut to what the queue calls, and botocore sessions that read it.

The file comes from `scripts/trim_service_model.py`; why it exists is in ADR 0004. It must not check requests, nor make
clients.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from botocore.model import Shape
    from botocore.session import Session

_MODELS = Path(__file__).parent / "models"
_SERVICE = _MODELS / "sagemaker" / "2017-07-24" / "service-2.json"


def service_file() -> Path:
    """The trimmed model itself."""
    return _SERVICE


def use_trimmed_model(session: Session) -> Session:
    """Let a botocore session's SageMaker clients read the trimmed model.

    Call it before the session makes a client, or is given to boto3. Other services' models and endpoints, and the
    user's AWS_DATA_PATH, stay as they are.
    """
    from botocore.loaders import create_loader

    paths = [str(_MODELS), *filter(None, [session.get_config_variable("data_path")])]
    session.register_component("data_loader", create_loader(os.pathsep.join(paths)))
    return session


@lru_cache(maxsize=4)
def shape(name: str) -> Shape:
    """A shape of the trimmed model. Raises botocore's `NoShapeFoundError` for a name that it has not."""
    # Importing botocore is a large part of a cold start, so that only a check pays for it.
    from botocore.model import ServiceModel

    return ServiceModel(json.loads(_SERVICE.read_bytes()), "sagemaker").shape_for(name)
