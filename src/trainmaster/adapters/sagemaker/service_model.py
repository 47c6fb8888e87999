"""SageMaker's service model, cut to the calls of the queue, and botocore sessions that read it.

`scripts/trim_service_model.py` writes the file; ADR 0004 has the reasons.
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
SERVICE_FILE = _MODELS / "sagemaker" / "2017-07-24" / "service-2.json"
"""The trimmed model."""


def use_trimmed_model(session: Session) -> Session:
    """Make a botocore session's SageMaker clients read the trimmed model; return the session.

    Call it before the session makes a client, or is given to boto3. Other services' models and endpoints, and the
    user's AWS_DATA_PATH, stay as they are.
    """
    from botocore.loaders import create_loader

    paths = [str(_MODELS), *filter(None, [session.get_config_variable("data_path")])]
    session.register_component("data_loader", create_loader(os.pathsep.join(paths)))
    return session


@lru_cache(maxsize=4)
def shape(name: str) -> Shape:
    """Return a shape of the trimmed model. Raises botocore's `NoShapeFoundError` for an unknown name."""
    # Importing botocore takes a large part of a cold start, so only a check pays for it.
    from botocore.model import ServiceModel

    return ServiceModel(json.loads(SERVICE_FILE.read_bytes()), "sagemaker").shape_for(name)
