"""Public manifests: skeletons of them are converted as the manifests are, and the page in the docs says how."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scripts.manifest_corpus import BASE, CORPUS, PAGE, as_text, fill, outcome, page

from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.client.hyperpod.kinds import the_job
from trainmaster.client.hyperpod.manifest import convert_manifest
from trainmaster.domain.requests.training_job import meaning_problems

ENTRIES: list[dict[str, Any]] = json.loads(CORPUS.read_text())
IMAGE = {"AlgorithmSpecification": {"TrainingImage": "image:1"}}


def test_are_of_several_repositories_and_kinds():
    assert len(ENTRIES) >= 40
    assert len({entry["repository"] for entry in ENTRIES}) >= 10
    assert len({str(document.get("kind")) for entry in ENTRIES for document in entry.get("documents", ())}) >= 8
    assert {entry["license"] for entry in ENTRIES} == {"Apache-2.0", "MIT-0"}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry['repository']}/{entry['path']}")
def test_are_converted_or_refused_as_recorded(entry):
    assert outcome(as_text(entry)) == entry["outcome"]
    if "filled" in entry:
        assert outcome(as_text({"documents": fill(entry["documents"])})) == entry["filled"]


@pytest.mark.parametrize(
    "entry", [entry for entry in ENTRIES if "refused" not in entry.get("filled", entry["outcome"])],
    ids=lambda entry: f"{entry['repository']}/{entry['path']}",
)  # fmt: skip
def test_become_requests_that_sagemaker_takes(entry):
    job, companions = the_job(fill(entry["documents"]) if "filled" in entry else entry["documents"])
    named = entry.get("filled", entry["outcome"]).get("type")
    base = BASE | IMAGE | ({} if named else {"ResourceConfig": {"InstanceType": "ml.p5.48xlarge"}})
    made = convert_manifest(job, base, companions)
    assert list(problems(made.request)) == []
    assert list(meaning_problems(made.request)) == []


def test_all_of_awss_checkpointless_examples_are_converted():
    found = [entry for entry in ENTRIES if entry["repository"] == "aws/sagemaker-hyperpod-checkpointless-training"]
    assert len(found) == 8
    assert all(entry["outcome"]["type"] == "ml.p5.48xlarge" for entry in found)
    assert all(entry["outcome"]["uploads"] == ["run.sh", "hyperpodrun"] for entry in found)


def test_are_listed_on_their_page():
    assert PAGE.read_text() == page(ENTRIES)
