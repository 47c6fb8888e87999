"""Public examples for the SageMaker SDK 2, rewritten with the same calls and arguments, through a deployed queue.

`docs/reference/examples.md` names the sources and what is replaced. test_public_examples.py runs this suite.
"""

import json
import tarfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sagemaker import LinearLearner, get_execution_role, image_uris
from sagemaker.debugger import ProfilerRule, Rule, rule_configs
from sagemaker.estimator import Estimator
from sagemaker.exceptions import UnexpectedStatusException
from sagemaker.experiments.run import Run
from sagemaker.huggingface import HuggingFace, TrainingCompilerConfig
from sagemaker.inputs import FileSystemInput, TrainingInput
from sagemaker.instance_group import InstanceGroup
from sagemaker.jumpstart.estimator import JumpStartEstimator
from sagemaker.processing import ProcessingInput, ProcessingOutput
from sagemaker.pytorch import PyTorch
from sagemaker.remote_function import RemoteExecutor, remote
from sagemaker.sklearn.estimator import SKLearn
from sagemaker.sklearn.processing import SKLearnProcessor
from sagemaker.tensorflow import TensorFlow
from sagemaker.tuner import ContinuousParameter, HyperparameterTuner, IntegerParameter
from sagemaker.workflow.pipeline import Pipeline
from sagemaker.workflow.pipeline_context import PipelineSession
from sagemaker.workflow.steps import TrainingStep
from sagemaker.xgboost.estimator import XGBoost

import public_examples
from trainmaster import QueueBypassWarning, QueueSession, route_to_queue

pytestmark = pytest.mark.usefixtures("deployed")
ACCOUNT_IMAGE = "000000000000.dkr.ecr.us-east-1.amazonaws.com/example:1"
XGBOOST = {"max_depth": "5", "eta": "0.2", "objective": "reg:squarederror", "num_round": "50"}


class RecordingSession(QueueSession):  # type: ignore[misc]
    """A QueueSession that keeps the requests of estimators, which do not pass through a client."""

    def __init__(self, recorder: public_examples.Recorder) -> None:
        super().__init__(recorder.session)
        self.recorder = recorder

    def _intercept_create_request(
        self, request: dict[str, Any], create: Callable[..., Any], func_name: str | None = None
    ) -> Any:
        if func_name == "train":
            self.recorder.requests.append(deepcopy(request))
        return super()._intercept_create_request(request, create, func_name)


class Example:
    """The session of an example, and what came of its requests."""

    def __init__(self) -> None:
        self.recorder = public_examples.Recorder()
        self.session = RecordingSession(self.recorder)
        self.role = get_execution_role(self.session)

    def data(self, *channels: str) -> dict[str, str]:
        return public_examples.data(self.recorder.session, *channels)

    def completed(self, estimator: Any, ran: bool = False) -> dict[str, Any]:
        """Require that the job completed, that its script ran or not, and that it can be attached to."""
        described = public_examples.check_completed(self.session.queue, self.recorder.request)
        assert estimator.model_data == described["ModelArtifacts"]["S3ModelArtifacts"]
        attached = Estimator.attach(estimator.latest_training_job.name, sagemaker_session=self.session)
        assert attached.model_data == estimator.model_data
        printed = public_examples.RAN if ran else public_examples.SIMULATED
        assert public_examples.has_printed(described["TrainingJobName"], printed)
        return described


@pytest.fixture
def example(deployed: None) -> Example:
    return Example()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Write a training script to the working directory."""
    monkeypatch.chdir(tmp_path)
    return lambda name="train.py", folder="scripts": public_examples.script(tmp_path / folder, name)


def test_xgboost_with_boto3(example: Example) -> None:
    route_to_queue(example.recorder.session, example.session.queue)
    client = example.recorder.session.client("sagemaker")
    channels = example.data("train", "validation")
    client.create_training_job(
        AlgorithmSpecification={
            "TrainingImage": image_uris.retrieve("xgboost", "us-east-1", "1.7-1"),
            "TrainingInputMode": "File",
        },
        RoleArn=example.role,
        OutputDataConfig={"S3OutputPath": "s3://examples/single-xgboost"},
        ResourceConfig={"InstanceCount": 1, "InstanceType": "ml.m5.2xlarge", "VolumeSizeInGB": 5},
        TrainingJobName="xgboost-boto3",
        HyperParameters=XGBOOST,
        StoppingCondition={"MaxRuntimeInSeconds": 3600},
        InputDataConfig=[
            {
                "ChannelName": name,
                "DataSource": {
                    "S3DataSource": {
                        "S3DataType": "S3Prefix",
                        "S3Uri": uri,
                        "S3DataDistributionType": "FullyReplicated",
                    }
                },
                "ContentType": "libsvm",
                "CompressionType": "None",
            }
            for name, uri in channels.items()
        ],
    )
    waiter = client.get_waiter("training_job_completed_or_stopped")
    waiter.wait(TrainingJobName="xgboost-boto3", WaiterConfig={"Delay": 1})
    public_examples.check_completed(example.session.queue, example.recorder.request)


def test_xgboost_built_in_on_spot(example: Example) -> None:
    estimator = Estimator(
        image_uris.retrieve("xgboost", "us-east-1", "1.7-1"),
        example.role,
        hyperparameters=XGBOOST,
        instance_count=1,
        instance_type="ml.m5.2xlarge",
        volume_size=5,
        output_path="s3://examples/output",
        sagemaker_session=example.session,
        use_spot_instances=True,
        max_run=3600,
        max_wait=7200,
        checkpoint_s3_uri="s3://examples/checkpoints/xgboost-spot",
    )
    train = TrainingInput(s3_data=example.data("train")["train"], content_type="libsvm")
    estimator.fit({"train": train}, job_name="xgboost-spot")
    assert example.completed(estimator)["EnableManagedSpotTraining"] is True


def test_xgboost_script_mode_on_spot(example: Example, source: Callable[..., str]) -> None:
    estimator = XGBoost(
        entry_point=source("abalone.py", "."),
        hyperparameters=XGBOOST,
        role=example.role,
        instance_count=1,
        instance_type="ml.m5.2xlarge",
        framework_version="1.7-1",
        output_path="s3://examples/xgboost-script-mode/output",
        use_spot_instances=True,
        max_run=3600,
        max_wait=7200,
        checkpoint_s3_uri="s3://examples/checkpoints/xgboost-script",
        sagemaker_session=example.session,
    )
    train = TrainingInput(s3_data=example.data("train")["train"], content_type="libsvm")
    estimator.fit({"train": train, "validation": train}, job_name="xgboost-script")
    assert example.completed(estimator)["HyperParameters"]["sagemaker_program"] == '"abalone.py"'


def test_xgboost_script_mode_on_two_instances(example: Example, source: Callable[..., str]) -> None:
    estimator = XGBoost(
        entry_point=source("abalone.py", "."),
        framework_version="1.7-1",
        hyperparameters=XGBOOST,
        role=example.role,
        instance_count=2,
        instance_type="ml.m5.xlarge",
        output_path="s3://examples/output",
        sagemaker_session=example.session,
    )
    channels = example.data("train", "validation")
    estimator.fit({name: TrainingInput(f"{uri}/", content_type="libsvm") for name, uri in channels.items()})
    assert example.completed(estimator)["ResourceConfig"]["InstanceCount"] == 2


def test_hugging_face(example: Example, source: Callable[..., str]) -> None:
    estimator = HuggingFace(
        entry_point=source(),
        source_dir="./scripts",
        instance_type="ml.p3.2xlarge",
        instance_count=1,
        role=example.role,
        transformers_version="4.26",
        pytorch_version="1.13",
        py_version="py39",
        hyperparameters={"epochs": 1, "train_batch_size": 32, "model_name": "distilbert-base-uncased"},
        sagemaker_session=example.session,
    )
    estimator.fit(example.data("train", "test"))
    assert example.completed(estimator)["HyperParameters"]["model_name"] == '"distilbert-base-uncased"'


def test_hugging_face_on_spot_with_checkpoints(example: Example, source: Callable[..., str]) -> None:
    estimator = HuggingFace(
        entry_point=source(),
        source_dir="./scripts",
        instance_type="ml.p3.2xlarge",
        instance_count=1,
        base_job_name="huggingface-spot",
        role=example.role,
        transformers_version="4.26.0",
        pytorch_version="1.13.1",
        py_version="py39",
        hyperparameters={"epochs": 1, "learning_rate": 3e-5, "fp16": True, "output_dir": "/opt/ml/checkpoints"},
        use_spot_instances=True,
        max_wait=7200,
        max_run=3600,
        checkpoint_s3_uri="s3://examples/huggingface-spot/checkpoints",
        sagemaker_session=example.session,
    )
    estimator.fit(example.data("train", "test"))
    assert example.completed(estimator)["StoppingCondition"]["MaxWaitTimeInSeconds"] == 7200


def test_hugging_face_data_parallel_from_git(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = public_examples.repository(tmp_path / "clone", "examples/pytorch/question-answering/run_qa.py")
    url = "https://github.com/huggingface/transformers.git"
    for name, value in public_examples.cloned_from({url: folder}).items():
        monkeypatch.setenv(name, value)
    estimator = HuggingFace(
        entry_point="run_qa.py",
        source_dir="./examples/pytorch/question-answering",
        git_config={"repo": url, "branch": "main"},
        metric_definitions=[
            {"Name": "train_runtime", "Regex": r"train_runtime.*=\D*(.*?)$"},
            {"Name": "f1", "Regex": r"f1.*=\D*(.*?)$"},
        ],
        instance_type="ml.p3.16xlarge",
        instance_count=2,
        volume_size=200,
        role=example.role,
        transformers_version="4.26.0",
        pytorch_version="1.13.1",
        py_version="py39",
        distribution={"smdistributed": {"dataparallel": {"enabled": True}}},
        hyperparameters={"dataset_name": "squad", "do_train": True, "output_dir": "/opt/ml/model"},
        sagemaker_session=example.session,
    )
    estimator.fit()
    assert len(example.completed(estimator)["AlgorithmSpecification"]["MetricDefinitions"]) == 2


def test_hugging_face_model_parallel_from_git(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = public_examples.repository(tmp_path / "clone", "examples/pytorch/text-classification/run_glue.py")
    url = "https://github.com/huggingface/transformers.git"
    for name, value in public_examples.cloned_from({url: folder}).items():
        monkeypatch.setenv(name, value)
    parallel = {
        "microbatches": 4,
        "placement_strategy": "spread",
        "pipeline": "interleaved",
        "partitions": 4,
        "ddp": True,
    }
    estimator = HuggingFace(
        entry_point="run_glue.py",
        source_dir="./examples/pytorch/text-classification",
        git_config={"repo": url, "branch": "main"},
        instance_type="ml.p3.16xlarge",
        instance_count=1,
        volume_size=200,
        role=example.role,
        transformers_version="4.26.0",
        pytorch_version="1.13.1",
        py_version="py39",
        distribution={
            "smdistributed": {"modelparallel": {"enabled": True, "parameters": parallel}},
            "mpi": {"enabled": True, "processes_per_host": 8},
        },
        hyperparameters={"model_name_or_path": "roberta-large", "task_name": "mnli", "max_steps": 500},
        debugger_hook_config=False,
        sagemaker_session=example.session,
    )
    estimator.fit()
    assert '"microbatches": 4' in example.completed(estimator)["HyperParameters"]["mp_parameters"]


def test_hugging_face_training_compiler(example: Example, source: Callable[..., str]) -> None:
    estimator = HuggingFace(
        entry_point=source(),
        source_dir="./scripts",
        instance_type="ml.p3.2xlarge",
        instance_count=1,
        base_job_name="training-compiler",
        role=example.role,
        transformers_version="4.11.0",
        pytorch_version="1.9.0",
        py_version="py38",
        hyperparameters={"epochs": 4, "train_batch_size": 24, "learning_rate": 3e-5, "fp16": True},
        compiler_config=TrainingCompilerConfig(),
        disable_profiler=True,
        debugger_hook_config=False,
        sagemaker_session=example.session,
    )
    estimator.fit(example.data("train", "test"))
    assert example.completed(estimator)["HyperParameters"]["sagemaker_training_compiler_enabled"] == "true"


def test_hugging_face_tensorflow_data_parallel(example: Example, source: Callable[..., str]) -> None:
    estimator = HuggingFace(
        entry_point=source(),
        source_dir="./scripts",
        instance_type="ml.p3dn.24xlarge",
        instance_count=2,
        role=example.role,
        transformers_version="4.6",
        tensorflow_version="2.4",
        py_version="py37",
        distribution={"smdistributed": {"dataparallel": {"enabled": True}}},
        hyperparameters={"epochs": 1, "train_batch_size": 16, "model_name": "distilbert-base-uncased"},
        debugger_hook_config=False,
        sagemaker_session=example.session,
    )
    estimator.fit()
    assert example.completed(estimator)["ResourceConfig"]["InstanceCount"] == 2


def test_jumpstart_estimator(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK looks models up in a folder, in the place of JumpStart's bucket."""
    monkeypatch.setenv("AWS_JUMPSTART_CONTENT_BUCKET_OVERRIDE", public_examples.BUCKET)
    for kind in ("MANIFEST", "SPECS"):
        monkeypatch.setenv(f"AWS_JUMPSTART_{kind}_LOCAL_ROOT_DIR_OVERRIDE", str(tmp_path))
    model = {"model_id": "meta-textgeneration-llama-3-8b", "version": "2.0.0"}
    manifest = {**model, "min_version": "2.0.0", "spec_key": "specs.json", "search_keywords": []}
    framework = {"framework": "pytorch", "framework_version": "2.0.0", "py_version": "py310"}
    image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.0.0-gpu-py310"
    specs = {
        **model,
        "url": "https://example.com",
        "min_sdk_version": "2.0.0",
        "hosting_ecr_specs": framework,
        "training_ecr_specs": framework,
        # Newer releases of the SDK read the image of a model only here.
        "training_instance_type_variants": {
            "regional_aliases": {"us-east-1": {"gpu_ecr_uri_1": image}},
            "variants": {"g5": {"regional_properties": {"image_uri": "$gpu_ecr_uri_1"}}},
        },
        "training_supported": True,
        "training_artifact_key": "data/model/part-0",
        "training_script_key": "jumpstart/code.tar.gz",
        "default_training_instance_type": "ml.g5.12xlarge",
        "supported_training_instance_types": ["ml.g5.12xlarge"],
        "training_volume_size": 256,
        "hyperparameters": [
            {"name": name, "type": "text", "default": default, "scope": "algorithm"}
            for name, default in (("instruction_tuned", "False"), ("epoch", "5"))
        ],
    }
    (tmp_path / "models_manifest.json").write_text(json.dumps([manifest]))
    (tmp_path / "specs.json").write_text(json.dumps(specs))
    uris = example.data("model", "training")
    public_examples.script(tmp_path / "code", "transfer_learning.py")
    with tarfile.open(tmp_path / "code.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "code", ".")
    example.recorder.session.client("s3").upload_file(
        str(tmp_path / "code.tar.gz"), public_examples.BUCKET, "jumpstart/code.tar.gz"
    )
    estimator = JumpStartEstimator(
        model_id=model["model_id"],
        environment={"accept_eula": "true"},
        disable_output_compression=True,
        instance_type="ml.g5.12xlarge",
        role=example.role,
        sagemaker_session=example.session,
    )
    estimator.set_hyperparameters(instruction_tuned="True", epoch="5", max_input_length="1024")
    estimator.fit({"training": uris["training"]})
    described = public_examples.check_completed(example.session.queue, example.recorder.request)
    assert public_examples.has_printed(described["TrainingJobName"], public_examples.RAN)
    channels = {each["ChannelName"]: each["DataSource"]["S3DataSource"] for each in described["InputDataConfig"]}
    assert channels.keys() == {"training", "model"}
    assert channels["model"]["ModelAccessConfig"] == {"AcceptEula": True}


def test_deepar_built_in(example: Example) -> None:
    estimator = Estimator(
        sagemaker_session=example.session,
        image_uri=image_uris.retrieve("forecasting-deepar", "us-east-1"),
        role=example.role,
        instance_count=1,
        instance_type="ml.c5.2xlarge",
        base_job_name="DEMO-DeepAR",
        use_spot_instances=False,
        output_path="s3://examples/deepar",
    )
    estimator.set_hyperparameters(epochs="50", time_freq="H", prediction_length=24, context_length=24)
    estimator.fit(inputs=example.data("train", "test"))
    assert example.completed(estimator)["HyperParameters"]["time_freq"] == "H"


def test_linear_learner(example: Example) -> None:
    learner = LinearLearner(
        role=example.role,
        instance_count=1,
        instance_type="ml.m4.xlarge",
        predictor_type="multiclass_classifier",
        num_classes=7,
        output_path="s3://examples/linear",
        data_location="s3://examples/linear/data",
        sagemaker_session=example.session,
    )
    example.data()
    features, labels = np.zeros((10, 54), dtype="float32"), np.arange(10, dtype="float32") % 7
    records = [learner.record_set(features, labels, channel=name) for name in ("train", "validation")]
    learner.fit(records)
    described = example.completed(learner)
    assert described["HyperParameters"]["feature_dim"] == "54"
    assert described["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3DataType"] == "ManifestFile"


def test_hugging_face_fsdp_with_torchrun(example: Example, source: Callable[..., str]) -> None:
    estimator = HuggingFace(
        entry_point=source("run_clm.py"),
        source_dir="./scripts",
        instance_type="ml.p4d.24xlarge",
        instance_count=2,
        volume_size=200,
        role=example.role,
        job_name="huggingface-fsdp",
        transformers_version="4.26.0",
        pytorch_version="1.13.1",
        py_version="py39",
        hyperparameters={"model_id": "gpt", "bf16": True, "fsdp": '"full_shard auto_wrap"'},
        distribution={"torch_distributed": {"enabled": True}},
        sagemaker_session=example.session,
    )
    estimator.fit(example.data("training"), wait=True)
    assert example.completed(estimator)["HyperParameters"]["sagemaker_torch_distributed_enabled"] == "true"


def test_hugging_face_qlora(example: Example, source: Callable[..., str]) -> None:
    estimator = HuggingFace(
        entry_point=source("run_clm.py"),
        source_dir="scripts",
        instance_type="ml.g5.12xlarge",
        instance_count=1,
        base_job_name="huggingface-qlora",
        role=example.role,
        volume_size=300,
        transformers_version="4.28",
        pytorch_version="2.0",
        py_version="py310",
        hyperparameters={"model_id": "falcon", "epochs": 3, "lr": 2e-4},
        environment={"HUGGINGFACE_HUB_CACHE": "/tmp/.cache"},
        sagemaker_session=example.session,
    )
    estimator.fit(example.data("training"), wait=True)
    assert example.completed(estimator)["Environment"]["HUGGINGFACE_HUB_CACHE"] == "/tmp/.cache"


def test_heterogeneous_cluster(example: Example, source: Callable[..., str]) -> None:
    source(folder="source_dir")
    estimator = TensorFlow(
        entry_point="train.py",
        source_dir="./source_dir",
        instance_groups=[
            InstanceGroup("data_group", "ml.c5.xlarge", 1),
            InstanceGroup("dnn_group", "ml.m4.xlarge", 1),
        ],
        framework_version="2.9",
        py_version="py39",
        role=example.role,
        volume_size=10,
        max_run=3600,
        disable_profiler=True,
        sagemaker_session=example.session,
    )
    estimator.fit(job_name="hello-world-heterogenous")
    # The SDK cannot attach to such a job: it expects one instance type.
    described = public_examples.check_completed(example.session.queue, example.recorder.request)
    assert len(described["ResourceConfig"]["InstanceGroups"]) == 2
    assert estimator.model_data == described["ModelArtifacts"]["S3ModelArtifacts"]


def test_debugger_rules(example: Example, source: Callable[..., str]) -> None:
    estimator = TensorFlow(
        role=example.role,
        instance_count=1,
        instance_type="ml.p3.8xlarge",
        image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.3.1-gpu-py37-cu110-ubuntu18.04",
        max_run=3600,
        source_dir="./src",
        entry_point=source("tf-resnet50-cifar10.py", "src"),
        rules=[Rule.sagemaker(rule_configs.overfit()), ProfilerRule.sagemaker(rule_configs.ProfilerReport())],
        sagemaker_session=example.session,
    )
    estimator.fit(wait=False)
    estimator.latest_training_job.wait(logs="None")
    described = public_examples.check_completed(example.session.queue, example.recorder.request)
    assert [rule["RuleConfigurationName"] for rule in described["DebugRuleConfigurations"]] == ["Overfit"]
    assert len(described["ProfilerRuleConfigurations"]) == 1


def test_pipe_input(example: Example) -> None:
    estimator = Estimator(
        image_uri=ACCOUNT_IMAGE,
        role=example.role,
        base_job_name="pipe-bring-your-own-test",
        instance_count=1,
        instance_type="ml.c4.xlarge",
        input_mode="Pipe",
        sagemaker_session=example.session,
    )
    estimator.fit(example.data("train")["train"])
    assert example.completed(estimator)["AlgorithmSpecification"]["TrainingInputMode"] == "Pipe"


def test_fast_file_input(example: Example, source: Callable[..., str]) -> None:
    estimator = PyTorch(
        entry_point=source(),
        source_dir="scripts",
        role=example.role,
        instance_type="ml.m5.xlarge",
        instance_count=1,
        framework_version="1.13",
        py_version="py39",
        input_mode="FastFile",
        sagemaker_session=example.session,
    )
    estimator.fit({"train": TrainingInput(example.data("train")["train"], input_mode="FastFile")})
    assert example.completed(estimator, ran=True)["InputDataConfig"][0]["InputMode"] == "FastFile"


def test_mpi(example: Example, source: Callable[..., str]) -> None:
    estimator = TensorFlow(
        entry_point=source("mpi_demo.py", "."),
        role=example.role,
        framework_version="2.3.0",
        distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
        py_version="py37",
        instance_count=3,
        instance_type="ml.c5.2xlarge",
        output_path=f"s3://{example.session.default_bucket()}/mpi",
        sagemaker_session=example.session,
    )
    estimator.fit()
    assert example.completed(estimator)["HyperParameters"]["sagemaker_mpi_num_of_processes_per_host"] == "2"


def test_smdistributed_with_fsx_in_a_vpc(example: Example, source: Callable[..., str]) -> None:
    estimator = PyTorch(
        base_job_name="pt-bert-smdataparallel-N2-p3dn",
        source_dir=".",
        entry_point=source("train.sh", "."),
        role=example.role,
        image_uri=ACCOUNT_IMAGE,
        framework_version="1.10.2",
        py_version="py38",
        instance_count=2,
        instance_type="ml.p3dn.24xlarge",
        sagemaker_session=example.session,
        subnets=["subnet-0f9b6a21"],
        security_group_ids=["sg-03ebbb2a"],
        debugger_hook_config=False,
        distribution={"smdistributed": {"dataparallel": {"enabled": True}}},
    )
    train = FileSystemInput(
        file_system_id="fs-0123456789abcdef0",
        file_system_type="FSxLustre",
        directory_path="/fsx/data",
        file_system_access_mode="rw",
    )
    with pytest.raises(UnexpectedStatusException, match="this machine has no file systems of EFS or FSx"):
        estimator.fit(train)
    described = public_examples.check_completed(example.session.queue, example.recorder.request, "Failed")
    assert described["VpcConfig"]["Subnets"] == ["subnet-0f9b6a21"]


def test_experiment_with_a_warm_pool(example: Example, source: Callable[..., str]) -> None:
    with Run(experiment_name="experiment", run_name="run", sagemaker_session=example.session):
        estimator = PyTorch(
            entry_point="./script/mnist.py",
            role=example.role,
            model_dir=False,
            framework_version="1.12",
            py_version="py38",
            instance_type="ml.c5.xlarge",
            instance_count=1,
            hyperparameters={"epochs": 10, "hidden_channels": 5, "optimizer": "adam", "region": "us-east-1"},
            keep_alive_period_in_seconds=3600,
            sagemaker_session=example.session,
        )
        source("mnist.py", "script")
        estimator.fit()
    described = example.completed(estimator, ran=True)
    assert described["ExperimentConfig"]["ExperimentName"] == "experiment"
    assert described["ResourceConfig"]["KeepAlivePeriodInSeconds"] == 3600


def test_mlflow(example: Example, source: Callable[..., str]) -> None:
    arn = "arn:aws:sagemaker:us-east-1:000000000000:mlflow-tracking-server/demo"
    estimator = SKLearn(
        entry_point=source(folder="training_code"),
        source_dir="training_code",
        role=example.role,
        instance_count=1,
        instance_type="ml.c4.xlarge",
        framework_version="1.2-1",
        hyperparameters={"max_leaf_nodes": 30},
        keep_alive_period_in_seconds=3600,
        environment={"MLFLOW_TRACKING_ARN": arn},
        sagemaker_session=example.session,
    )
    estimator.fit({"train": example.data("train")["train"]})
    assert example.completed(estimator, ran=True)["Environment"]["MLFLOW_TRACKING_ARN"] == arn


def test_remote_function(example: Example) -> None:
    @remote(
        instance_type="ml.m5.4xlarge",
        image_uri=ACCOUNT_IMAGE,
        sagemaker_session=example.session,
        role=example.role,
    )
    def divide(x: float, y: float) -> float:
        return x / y

    assert divide(3, 2) == 1.5
    public_examples.check_completed(example.session.queue, example.recorder.request)


def test_remote_executor_with_a_warm_pool(example: Example) -> None:
    def divide(x: float, y: float) -> float:
        return x / y

    with RemoteExecutor(
        max_parallel_jobs=1,
        keep_alive_period_in_seconds=30,
        instance_type="ml.m5.xlarge",
        image_uri=ACCOUNT_IMAGE,
        sagemaker_session=example.session,
        role=example.role,
    ) as executor:
        futures = [executor.submit(divide, 3, 2), executor.submit(divide, 8, 2)]
    assert [future.result() for future in futures] == [1.5, 4.0]
    for request in example.recorder.requests:
        described = public_examples.check_completed(example.session.queue, request)
        assert described["ResourceConfig"]["KeepAlivePeriodInSeconds"] == 30


def test_tuner_bypasses_the_queue(example: Example) -> None:
    estimator = Estimator(
        image_uris.retrieve("xgboost", "us-east-1", "1.7-1"),
        example.role,
        hyperparameters=XGBOOST,
        instance_count=1,
        instance_type="ml.m5.2xlarge",
        sagemaker_session=example.session,
    )
    tuner = HyperparameterTuner(
        estimator,
        "validation:rmse",
        {"max_depth": IntegerParameter(0, 10, scaling_type="Auto"), "eta": ContinuousParameter(0.1, 0.5)},
        max_jobs=6,
        max_parallel_jobs=2,
        objective_type="Minimize",
        base_tuning_job_name="xgboost",
    )
    train = TrainingInput(s3_data=example.data("train")["train"], content_type="libsvm")
    with pytest.warns(QueueBypassWarning, match="Submit each trial to the queue"):
        tuner.fit({"train": train, "validation": train}, wait=False)
    assert tuner.describe()["HyperParameterTuningJobStatus"]
    assert example.recorder.requests == []


def test_pipeline_bypasses_the_queue(example: Example) -> None:
    """A training step is part of the pipeline's definition: SageMaker starts it."""
    estimator = Estimator(
        image_uris.retrieve("xgboost", "us-east-1", "1.0-1", py_version="py3", instance_type="ml.m5.xlarge"),
        example.role,
        instance_type="ml.m5.xlarge",
        instance_count=1,
        output_path="s3://examples/pipeline",
        sagemaker_session=PipelineSession(example.recorder.session),
    )
    inputs = {"train": TrainingInput(s3_data="s3://examples/data/train", content_type="text/csv")}
    step = TrainingStep(name="AbaloneTrain", step_args=estimator.fit(inputs))
    pipeline = Pipeline(name="pipeline-v2", steps=[step], sagemaker_session=example.session)
    with pytest.warns(QueueBypassWarning, match="steps of a pipeline"):
        pipeline.upsert(role_arn=example.role)
    with pytest.warns(QueueBypassWarning, match="steps of a pipeline"):
        pipeline.start()
    assert example.recorder.requests == []


def test_processing_bypasses_the_queue(example: Example, source: Callable[..., str]) -> None:
    processor = SKLearnProcessor(
        framework_version="1.2-1",
        role=example.role,
        instance_type="ml.m5.xlarge",
        instance_count=1,
        sagemaker_session=example.session,
    )
    with pytest.warns(QueueBypassWarning, match="Processing jobs bypass the queue"):
        processor.run(
            code=source("preprocessing.py", "."),
            inputs=[ProcessingInput(source="preprocessing.py", destination="/opt/ml/processing/input")],
            outputs=[ProcessingOutput(source="/opt/ml/processing/output/train")],
            wait=False,
        )
    assert processor.latest_job.describe()["ProcessingJobStatus"]


def test_local_mode_bypasses_the_queue(example: Example, source: Callable[..., str]) -> None:
    """Local mode replaces the session by its own, which runs Docker: the queue gets no request."""
    estimator = PyTorch(
        entry_point=source("cifar10.py", "source"),
        source_dir="source",
        role=example.role,
        framework_version="1.7.1",
        py_version="py3",
        instance_count=1,
        instance_type="local",
    )
    assert type(estimator.sagemaker_session).__name__ == "LocalSession"
    with pytest.raises((ImportError, OSError, ValueError), match=r"(?i)docker"):
        estimator.fit({"train": "file://" + str(Path.cwd())})
    assert example.recorder.requests == []
