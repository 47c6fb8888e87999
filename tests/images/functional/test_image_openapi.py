"""The OpenAPI document and docs/reference/api.md have all of image jobs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from api_world import ApiWorld
from image_api_world import ImageApiWorld
from trainmaster.handlers.api.app import OPERATIONS
from trainmaster.handlers.api.operations import operations_of
from trainmaster.images.handlers.api import ImageApi

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
COMMITTED = json.loads((REFERENCE / "openapi.json").read_text())


def test_what_is_served_with_image_jobs_is_what_is_committed():
    assert ImageApiWorld().get("/openapi.json").body == COMMITTED


def test_the_committed_document_has_the_route_of_image_jobs_beside_those_of_the_queue():
    assert COMMITTED["paths"].keys() - ApiWorld().get("/openapi.json").body["paths"].keys() == {"/image-jobs"}
    assert COMMITTED["paths"]["/image-jobs"].keys() == {"post"}


def test_every_route_has_its_section_and_every_section_its_route():
    text = (REFERENCE / "api.md").read_text()
    headed = re.findall(r"^### (GET|POST|PUT|PATCH|DELETE) (\S+)$", text, re.MULTILINE)
    operations = OPERATIONS | operations_of(ImageApi)
    assert sorted(headed) == sorted(
        (each.method, each.rule.replace("<", "{").replace(">", "}")) for _, each in operations.values()
    )
