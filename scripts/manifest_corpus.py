"""Writes the corpus of public manifests, and the page that lists how each is converted.

    python scripts/manifest_corpus.py              the page, from the corpus in tests/fixtures
    python scripts/manifest_corpus.py DIRECTORY    also the corpus, from clones at DIRECTORY/<owner>+<name>

The corpus contains no text of the manifests: names of fields and the values that decide how a manifest is converted
stay, words of commands, scripts and descriptions are replaced by as many letters.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from trainmaster.cli.common.request import read_job
from trainmaster.client.api.errors import Refused
from trainmaster.client.hyperpod.yaml_reader import parse_documents

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tests/fixtures/manifests/corpus.json"
PAGE = ROOT / "docs/reference/manifests.md"
_CHECKPOINTLESS = "aws/sagemaker-hyperpod-checkpointless-training"
_AWSOME = "aws-samples/awsome-distributed-training"
_FSDP = "3.test_cases/pytorch/FSDP/kubernetes"
_GOVERNANCE = "1.architectures/7.sagemaker-hyperpod-eks/task-governance"
_DO_EKS = "Container-Root/eks/deployment/distributed-training/pytorch/pytorchjob"
_ESM = "aws-solutions-library-samples/guidance-for-protein-language-esm-model-training-with-sagemaker-hyperpod"
LICENSES = {
    _CHECKPOINTLESS: "Apache-2.0",
    "aws/sagemaker-hyperpod-recipes": "Apache-2.0",
    _AWSOME: "MIT-0",
    "aws-samples/aws-do-eks": "MIT-0",
    "aws-samples/aws-do-hyperpod": "MIT-0",
    "awslabs/ai-on-sagemaker-hyperpod": "Apache-2.0",
    "awslabs/ai-on-eks": "Apache-2.0",
    _ESM: "MIT-0",
    "kubeflow/pytorch-operator": "Apache-2.0",
    "kubernetes-sigs/jobset": "Apache-2.0",
    "kubernetes-sigs/kueue": "Apache-2.0",
    "aws-samples/karpenter-blueprints": "MIT-0",
    "ray-project/kuberay": "Apache-2.0",
}
PATHS = {
    _CHECKPOINTLESS: [
        f"examples/{model}/launch/{kind}_{size}{suffix}_p5.yaml"
        for model, kind, size in (
            ("gpt_oss", "full_finetune", "gpt_oss_120b"),
            ("gpt_oss", "peft", "gpt_oss_120b"),
            ("llama3", "peft", "llama3_70b"),
            ("llama3", "pretrain", "llama3_70b"),
        )
        for suffix in ("", "_checkpointless")
    ],
    "aws/sagemaker-hyperpod-recipes": [
        "launcher/nemo/k8s_templates/training/training.yaml",
        "launcher/nemo/k8s_templates/ray/training.yaml",
        "launcher/nova/k8s_templates/SFT/training.yaml",
        "launcher/evaluation/k8s_templates/EVAL/evaluation.yaml",
    ],
    _AWSOME: [
        f"{_FSDP}/llama3_1_8b-fsdp-hpto.yaml",
        f"{_FSDP}/llama2_7b-fsdp.yaml",
        f"{_FSDP}/mistral_8x7b-fsdp.yaml",
        f"{_FSDP}/training_kubernetes.template",
        f"{_GOVERNANCE}/1-imagenet-gpu-team-a.yaml",
        f"{_GOVERNANCE}/3-imagenet-gpu-team-b-higher-prio.yaml",
        "3.test_cases/megatron/megatron-lm/kubernetes/gpt3/manifests/pytorchjob.yaml-template",
        "3.test_cases/megatron/megatron-lm/kubernetes/gpt3/manifests/prepdata-job.yaml-template",
        "3.test_cases/pytorch/neuronx-distributed/llama3/kubernetes/llama3_train.yaml-template",
        "3.test_cases/pytorch/ddp/kubernetes/ddp-custom-container.yaml-template",
        "4.validation_and_observability/5.nsight/EKS/fsdp.yaml",
        "3.test_cases/pytorch/optimum-neuron/llama3/kubernetes/fine-tuning/templates/launch_peft_train.yaml-template",
        "3.test_cases/pytorch/mosaicml-composer/stable-diffusion/multi-node/3.stable-diffusion-eks.yaml-template",
        "micro-benchmarks/nccl-tests/kubernetes/nccl-tests.yaml",
    ],
    "aws-samples/aws-do-eks": [
        f"{_DO_EKS}/imagenet/imagenet-gpu.yaml",
        f"{_DO_EKS}/mnist/mnist.yaml",
        f"{_DO_EKS}/fsdp/fsdp.yaml-template",
        "Container-Root/eks/deployment/distributed-training/pytorch/volcano/vcjob.yaml",
    ],
    "aws-samples/aws-do-hyperpod": [
        "Container-Root/hyperpod/deployment/eks/model-training/pytorchjob/imagenet/imagenet-cpu.yaml",
        "Container-Root/hyperpod/deployment/eks/demo/hero/training/hpto_1b.yaml",
    ],
    "awslabs/ai-on-sagemaker-hyperpod": ["website/static/samples/pytorch_job_gpu.yaml"],
    "awslabs/ai-on-eks": ["infra/bionemo/examples/esm1nv/esm1nv_pretrain-job.yaml"],
    _ESM: [
        "train/esm2/eks/bionemo/esm2-pretrain.yaml",
        "train/esm2/eks/pytorch/download-data-real.yaml",
        "train/esm2/eks/bionemo/train-esm2-mpi-ddp.yaml",
    ],
    "kubeflow/pytorch-operator": [
        "examples/mnist/v1/pytorch_job_mnist_nccl.yaml",
        "examples/smoke-dist/pytorch_job_sendrecv.yaml",
        "examples/bert/pytorch_job_bert.yaml",
    ],
    "kubernetes-sigs/jobset": [
        "site/static/examples/pytorch/cnn-mnist/mnist.yaml",
        "site/static/examples/pytorch/resnet-cifar10/resnet.yaml",
        "site/static/examples/tpu-multislice/v6e-jax-workload.yaml",
        "site/static/examples/simple/coordinator.yaml",
        "site/static/examples/simple/exclusive-placement.yaml",
        "site/static/examples/workload-aware-scheduling/preemption/high-priority-jobset.yaml",
    ],
    "kubernetes-sigs/kueue": [
        "site/static/examples/jobs/sample-job.yaml",
        "site/static/examples/jobs/sample-pytorchjob.yaml",
        "site/static/examples/jobs/sample-tfjob.yaml",
        "site/static/examples/jobs/sample-scalable-job.yaml",
        "site/static/examples/jobs/sample-job-partial-admission.yaml",
        "site/static/examples/jobs/sample-jobset-tas-combined.yaml",
        "site/static/examples/provisioning/sample-job.yaml",
        "site/static/examples/tas/sample-job-required.yaml",
        "site/static/examples/appwrapper/pytorch-sample.yaml",
    ],
    "aws-samples/karpenter-blueprints": ["blueprints/batch-jobs/workloads-evicted.yaml"],
    "ray-project/kuberay": ["ray-operator/config/samples/pytorch-mnist/ray-job.pytorch-mnist.yaml"],
}
FILLINGS = {"INSTANCE_TYPE": "ml.p5.48xlarge", "ACCEL_INSTANCE_TYPE": "ml.p5.48xlarge", "MAX_NODES": "4"}
"""Values of placeholders; names that end in NODES, COUNT, NODE, WORKERS or WORKER are 2, others "value"."""
_WORD = re.compile(
    r"\$\$?\(?\{?[A-Za-z_][\w.]*|hyperpodrun|torchrun|trainmaster-run|<[a-z_]+>|\{\{[^}]*\}\}|[A-Za-z][a-z]{2,}"
)
_TEXT_FIELDS = frozenset({"command", "args", "value", "data", "annotations", "logPattern", "entrypoint"})
_NO_IMAGE = re.compile(r'image"?: *""')
_MAX_TEXT = 400
BASE = {
    "RoleArn": "arn:aws:iam::111122223333:role/training",
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/output"},
}


def outcome(text: str) -> dict[str, Any]:
    """Return how a manifest is converted, in short; with an image in the second file if it has none."""
    with tempfile.TemporaryDirectory() as directory:
        file, base = Path(directory, "FILE"), Path(directory, "base.json")
        file.write_text(text)
        image = {"AlgorithmSpecification": {"TrainingImage": "image:1"}} if _NO_IMAGE.search(text) else {}
        base.write_text(json.dumps(BASE | image))
        try:
            job = read_job(str(file), str(base))
        except Refused as refused:
            return {"refused": f"{refused.message} {refused.hint}".replace(f"{directory}/", "")}
    config = job.request["ResourceConfig"]
    tags = {tag["Key"]: tag["Value"] for tag in job.request["Tags"]}
    found = {
        "instances": config["InstanceCount"],
        "type": config.get("InstanceType") or tags.get("trainmaster:resources"),
        "uploads": [uri.rpartition("/")[2] for uri in job.uploads],
        "changesResult": [f"{each.field}: {each.why}" for each in job.not_honored if each.changes_result],
        "others": sum(not each.changes_result for each in job.not_honored),
    }
    return {name: value for name, value in found.items() if value}


def fill(value: Any) -> Any:
    """Replace shell placeholders outside scripts, as envsubst would."""
    if isinstance(value, dict):
        return {key: fill(each) for key, each in value.items()}
    if isinstance(value, list):
        return [fill(each) for each in value]
    if not isinstance(value, str):
        return value
    filled = re.sub(r"(?<!\$)\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", _filling, value)
    return int(filled) if filled != value and filled.isdigit() else filled


def _filling(match: re.Match[str]) -> str:
    name = match[1] or match[2]
    return FILLINGS.get(name, "2" if name.endswith(("NODES", "COUNT", "NODE", "WORKERS", "WORKER")) else "value")


def skeleton(value: Any, key: str = "") -> Any:
    """Return a document without its texts: those of the user become letters, but keep references and placeholders."""
    if isinstance(value, dict):
        return {name: skeleton(each, key if key in _TEXT_FIELDS else name) for name, each in value.items()}
    if isinstance(value, list):
        return [skeleton(each, key) for each in value]
    if not isinstance(value, str) or key not in _TEXT_FIELDS:
        return value
    return _WORD.sub(_letters, value)[:_MAX_TEXT] + (" hyperpodrun" if "hyperpodrun" in value[_MAX_TEXT:] else "")


def _letters(match: re.Match[str]) -> str:
    word = match[0]
    is_kept = word[0] in "$<{" or word in ("hyperpodrun", "torchrun", "bash", "bin")
    return word if is_kept else "x" * len(word)


def as_text(entry: dict[str, Any]) -> str:
    """Return a file with the documents of an entry."""
    if "template" in entry:
        return f"apiVersion: v1\nkind: Job\nspec: {entry['template']}\n"
    return "\n---\n".join(json.dumps(document, indent=1) for document in entry["documents"])


def read(clone: Path, repository: str, path: str) -> dict[str, Any]:
    """Return the entry of a manifest in a clone. Raises ValueError if its skeleton is converted differently."""
    commit = _git(clone, "rev-parse", "HEAD").strip()
    text = _git(clone, "show", f"HEAD:{path}")
    entry: dict[str, Any] = {"repository": repository, "path": path, "commit": commit, "license": LICENSES[repository]}
    try:
        entry["documents"] = [skeleton(document) for document in parse_documents(text)]
    except ValueError:
        entry["template"] = next(match[0] for match in re.finditer(r"\{\{-?[^{}]*\}\}", text))
    real, ours = outcome(text), outcome(as_text(entry))
    if "documents" in entry and real != ours:
        raise ValueError(f"{path}: the skeleton is converted to {ours}, the manifest to {real}")
    entry["outcome"] = ours
    if "has placeholders" in ours.get("refused", ""):
        entry["filled"] = outcome(as_text({"documents": fill(entry["documents"])}))
    return entry


def page(entries: list[dict[str, Any]]) -> str:
    """Return the page with a table of all manifests."""
    lines = [
        "# Public manifests",
        "",
        "These public manifests were given to `trainmaster submit` as they are, with a second file that sets only",
        "the role and the output, and the image where the manifest has none. [Submit a HyperPod or Kubernetes",
        "manifest](../how-to/kubernetes-manifests.md) explains what is honored. A test repeats the conversions with",
        "skeletons of the manifests, which have their fields without their texts.",
    ]
    for repository in dict.fromkeys(entry["repository"] for entry in entries):
        own = [entry for entry in entries if entry["repository"] == repository]
        lines += ["", f"## {repository}", "", f"Commit `{own[0]['commit'][:12]}`, {own[0]['license']}.", ""]
        lines += ["| manifest | outcome | without effect, and can change the result |", "|---|---|---|"]
        lines += [f"| `{entry['path']}` | {_told(entry['outcome'])} | {_effects(entry)} |" for entry in own]
    return "\n".join(lines) + "\n"


def _told(found: dict[str, Any]) -> str:
    if "refused" in found:
        return f"refused: {_cell(found['refused'])}"
    size = f"{found['instances']} x {found.get('type', 'a type that the manifest does not name')}"
    return f"{size}{', command uploaded' if found.get('uploads') else ''}"


def _effects(entry: dict[str, Any]) -> str:
    filled = entry.get("filled")
    found = entry["outcome"] if filled is None else filled
    names = [each.partition(": ")[0].rpartition("template.spec.")[2] for each in found.get("changesResult", [])]
    told = ", ".join(f"`{name}`" for name in names)
    return f"filled in: {_told(filled)}{'; ' if told else ''}{told}" if filled is not None else told


def _cell(text: str) -> str:
    """Return a text for a table; text in angle or double braces as code, which Markdown would interpret."""
    escaped = text.replace("|", "\\|").replace("`", "'")
    return re.sub(r"(<[^<> ]+>|\{\{.*?\}\}|envsubst .*|helm template .*)", r"`\1`", escaped)


def _git(clone: Path, *arguments: str) -> str:
    command = ["git", "-C", str(clone), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main(arguments: list[str]) -> None:
    """Write the corpus if there is a directory of clones, and the page."""
    if arguments:
        clones = Path(arguments[0])
        entries = []
        for repository, paths in PATHS.items():
            folder = clones / repository.replace("/", "+")
            clone = folder / "repo" if (folder / "repo").is_dir() else folder
            entries += [read(clone, repository, path) for path in paths]
        CORPUS.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
        CORPUS.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    PAGE.write_text(page(json.loads(CORPUS.read_text())))


if __name__ == "__main__":
    main(sys.argv[1:])
