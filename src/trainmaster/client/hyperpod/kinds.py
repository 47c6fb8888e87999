"""Finds the pods of a manifest, by its kind, and refuses kinds that a training job cannot run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.client.api.errors import Refused
from trainmaster.client.hyperpod.yaml_reader import ManifestReader, Path, invalid_field

HYPERPOD = "HyperPodPyTorchJob"
KUBEFLOW = "PyTorchJob"
JOB = "Job"
JOB_SET = "JobSet"
TRAINING_JOB = "TrainingJob"
_KINDS = {
    ("sagemaker.amazonaws.com", HYPERPOD.lower()): HYPERPOD,
    ("kubeflow.org", KUBEFLOW.lower()): KUBEFLOW,
    ("batch", JOB.lower()): JOB,
    ("jobset.x-k8s.io", JOB_SET.lower()): JOB_SET,
    ("sagemaker.services.k8s.aws", TRAINING_JOB.lower()): TRAINING_JOB,
    ("sagemaker.aws.amazon.com", TRAINING_JOB.lower()): TRAINING_JOB,
}
"""Supported kinds by API group and name in lower case: AWS writes both HyperPodPyTorchJob and HyperPodPytorchJob."""
SUPPORTED = f"{HYPERPOD}, {KUBEFLOW} (kubeflow.org), {JOB} (batch), {JOB_SET} and {TRAINING_JOB} (SageMaker's)"
_RAY = "submit a training job whose script starts Ray on its instances"
_HYPERPOD_VARIABLES = (
    "MASTER_ADDR", "MASTER_PORT", "NNODES", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NNODES", "PET_NODE_RANK",
)  # fmt: skip
_KUBEFLOW_VARIABLES = (*_HYPERPOD_VARIABLES, "RANK", "WORLD_SIZE")
_JOB_VARIABLES = {JOB: ("JOB_COMPLETION_INDEX",), JOB_SET: ("JOB_COMPLETION_INDEX", "MASTER_ADDR", "MASTER_PORT")}
_OTHERS = {
    "mpijob": "its launcher reaches the workers by SSH, which a training job does not set up: use MPI in the SageMaker "
    "SDK",
    "tfjob": "it needs TF_CONFIG of its operator: use the TensorFlow estimator of the SageMaker SDK",
    "trainjob": "its image and command can be in a runtime of the cluster: write a PyTorchJob",
    "rayjob": f"a training job has no Ray cluster: {_RAY}",
    "raycluster": f"a training job has no Ray cluster: {_RAY}",
    "rayservice": "a training job serves no requests: use a SageMaker endpoint",
    "jaxjob": "it needs variables of its operator: write a JobSet, which gives JOB_COMPLETION_INDEX and MASTER_ADDR",
    "xgboostjob": "it needs variables of its operator: use the XGBoost estimator of the SageMaker SDK",
    "appwrapper": "it contains other manifests: submit the one in spec.components[].template",
    "cronjob": "the queue has no schedules: submit the Job in spec.jobTemplate from a schedule, such as EventBridge's",
    "workflow": "it runs several steps: submit each as a job, with --after for those that follow",
    "job": "it belongs to another operator: write its pods as a Job of batch/v1, or as a PyTorchJob",
    "deployment": "a training job ends, a Deployment does not: use a SageMaker endpoint, or write a Job",
    "pod": "a pod can run without an end: write it as the template of a Job",
}
"""Reasons and advice for other kinds, by name in lower case."""
_JOBS = frozenset(name for _, name in _KINDS) | (_OTHERS.keys() - {"deployment", "pod"})
"""Kinds of jobs in lower case; other documents of a file accompany one."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The pods of a manifest.

    Attributes:
        kind: one of the supported kinds.
        run_policy: path of the object with the time limit.
        templates: paths of the pod templates; the first one's pod is the job's.
        replicas: number of pods of each template.
        variables: names of variables that the operator of the kind sets in its pods.
        first_pod: host name of the pod with rank 0, by which the others find it; "" if the kind gives it none.
    """

    kind: str
    run_policy: Path
    templates: tuple[Path, ...]
    replicas: tuple[int, ...]
    variables: tuple[str, ...] = ()
    first_pod: str = ""

    @property
    def pods(self) -> tuple[Path, ...]:
        """Paths of the specifications of all pods."""
        return tuple((*template, "spec") for template in self.templates)

    @property
    def pod(self) -> Path:
        """Path of the specification of the job's pod."""
        return (*self.templates[0], "spec")

    @property
    def container(self) -> Path:
        """Path of the job's container."""
        return (*self.pod, "containers", 0)


def is_manifest(value: object) -> bool:
    """Return whether the value is a Kubernetes manifest of any kind, rather than a request."""
    return isinstance(value, Mapping) and "apiVersion" in value and "kind" in value


def kind_of(manifest: Mapping[str, Any]) -> str | None:
    """Return the supported kind of a manifest; None for another."""
    group = str(manifest.get("apiVersion")).partition("/")[0]
    return _KINDS.get((group, str(manifest.get("kind")).lower()))


def check_kind(manifest: Mapping[str, Any]) -> str:
    """Return the supported kind of a manifest. Raises Refused, with what to do instead, for another."""
    kind = kind_of(manifest)
    if kind is not None:
        return kind
    name, version = manifest.get("kind"), manifest.get("apiVersion")
    advice = _OTHERS.get(str(name).lower(), "the queue cannot convert it")
    raise invalid_field(("kind",), f"is {name} of {version}: {advice}", f"Supported kinds: {SUPPORTED}.")


def layout_of(reader: ManifestReader) -> Layout:
    """Return the pods of a manifest. Raises Refused for another kind, or pods that one training job cannot run."""
    kind = check_kind({name: reader.take(str, name) for name in ("apiVersion", "kind")})
    if kind == HYPERPOD:
        return _hyperpod(reader)
    if kind == KUBEFLOW:
        return _kubeflow(reader)
    return _job(reader, JOB, ("spec",), 1) if kind == JOB else _job_set(reader)


def _hyperpod(reader: ManifestReader) -> Layout:
    path: Path = ("spec", "replicaSpecs")
    specs = reader.items(*path)
    if not specs:
        raise invalid_field(path, "is missing", "Specify at least one replica spec with replicas and a template.")
    replicas = [reader.take(int, *path, index, "replicas") for index in range(len(specs))]
    templates = tuple((*path, index, "template") for index in range(len(specs)))
    first = f"{reader.peek('metadata', 'name')}-{reader.peek(*path, 0, 'name')}-0"
    counts = tuple(count or 0 for count in replicas)
    return Layout(HYPERPOD, ("spec", "runPolicy"), templates, counts, _HYPERPOD_VARIABLES, first)


def _kubeflow(reader: ManifestReader) -> Layout:
    path: Path = ("spec", "pytorchReplicaSpecs")
    specs = reader.peek(*path)
    names = [name for name in ("Master", "Worker") if isinstance(specs, Mapping) and name in specs]
    replicas = {name: reader.take(int, *path, name, "replicas") for name in names}
    counts = {name: 1 if count is None else count for name, count in replicas.items() if count != 0}
    if not counts:
        raise invalid_field(path, "has no replicas", "Specify Master or Worker with replicas and a template.")
    templates = tuple((*path, name, "template") for name in counts)
    first = f"{reader.peek('metadata', 'name')}-{next(iter(counts)).lower()}-0"
    return Layout(KUBEFLOW, ("spec", "runPolicy"), templates, tuple(counts.values()), _KUBEFLOW_VARIABLES, first)


def _job(reader: ManifestReader, kind: str, path: Path, jobs: int) -> Layout:
    """Return the pods of a Job's specification; a training job runs them all at the same time."""
    parallelism = reader.take(int, *path, "parallelism")
    completions = reader.take(int, *path, "completions")
    is_indexed = reader.take(str, *path, "completionMode") == "Indexed" or kind == JOB_SET
    count = (1 if parallelism is None else parallelism) * jobs
    needed = completions if completions is not None else parallelism
    if needed is not None and needed != (1 if parallelism is None else parallelism):
        raise invalid_field(
            (*path, "completions"),
            f"is {completions}, but parallelism is {parallelism or 1}",
            "A training job runs all pods at the same time: set both to the same number, or submit several jobs.",
        )
    return Layout(kind, path, ((*path, "template"),), (count,), _JOB_VARIABLES[kind] if is_indexed else ())


def _job_set(reader: ManifestReader) -> Layout:
    path: Path = ("spec", "replicatedJobs")
    jobs = reader.items(*path)
    if len(jobs) != 1:
        raise invalid_field(
            path,
            f"has {len(jobs)} entries",
            "One training job runs one kind of pod: submit one manifest for each entry.",
        )
    first = f"{reader.peek('metadata', 'name')}-{reader.take(str, *path, 0, 'name')}-0-0"
    replicas = reader.take(int, *path, 0, "replicas")
    layout = _job(reader, JOB_SET, (*path, 0, "template", "spec"), 1 if replicas is None else replicas)
    return replace(layout, first_pod=first)


def check_templates(reader: ManifestReader, layout: Layout) -> None:
    """Check that all pods run the same command, as the instances of a training job do, and note other differences.

    Raises Refused if the commands or images differ.
    """
    for path in layout.templates[1:]:
        _mark_equal(reader, layout.templates[0], path)
        for member in ("image", "command", "args"):
            field: Path = ("spec", "containers", 0, member)
            ours, theirs = reader.peek(*layout.templates[0], *field), reader.peek(*path, *field)
            if theirs is not None and ours != theirs:
                raise invalid_field(
                    (*path, *field),
                    "differs from that of the first pods",
                    "All instances of a training job run one command: let it choose by $RANK, or submit two jobs.",
                )


def _mark_equal(reader: ManifestReader, first: Path, other: Path) -> None:
    """Mark fields as used that are as in the first pods."""
    ours, theirs = reader.peek(*first), reader.peek(*other)
    if ours == theirs:
        reader.mark_used(*other)
    keys: list[str | int] = []
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        keys = list(theirs)
    elif isinstance(ours, list) and isinstance(theirs, list):
        keys = list(range(len(theirs)))
    for key in keys:
        _mark_equal(reader, (*first, key), (*other, key))


def the_job(documents: list[Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the one job among the manifests of a file, and the documents that accompany it.

    Raises Refused if there are several jobs, or none.
    """
    documents = _flatten(documents)
    jobs = [document for document in documents if str(document.get("kind")).lower() in _JOBS]
    if not jobs and len(documents) == 1:
        check_kind(documents[0])
    if len(jobs) != 1:
        names = ", ".join(f"{job.get('kind')} {_name_of(job)}" for job in jobs)
        raise Refused(
            f"The file contains {len(jobs)} jobs{f': {names}' if names else ''}. Expected one.",
            type="InvalidFile",
            hint="Put each job into a file of its own, with the ConfigMaps that it uses.",
        )
    return jobs[0], [document for document in documents if document is not jobs[0]]


def _flatten(documents: list[Any]) -> list[Any]:
    """Replace each List by its items."""
    found: list[Any] = []
    for document in documents:
        items = document.get("items") if isinstance(document, Mapping) and document.get("kind") == "List" else None
        found += filter(is_manifest, items) if isinstance(items, list) else [document]
    return found


def _name_of(job: Mapping[str, Any]) -> str:
    metadata = job.get("metadata")
    return str(metadata.get("name") or metadata.get("generateName")) if isinstance(metadata, Mapping) else ""
