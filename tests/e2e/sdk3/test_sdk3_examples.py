"""Public examples for the SageMaker SDK 3, rewritten with the same calls and arguments, through a deployed queue.

`docs/reference/examples.md` names the sources and what is replaced. test_public_examples.py runs this suite.
"""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from sagemaker.core import image_uris
from sagemaker.core.helper.session_helper import get_execution_role
from sagemaker.core.jumpstart import JumpStartConfig
from sagemaker.core.parameter import CategoricalParameter, ContinuousParameter
from sagemaker.core.resources import TrainingJob
from sagemaker.core.shapes import (
    AlgorithmSpecification,
    Channel,
    DataSource,
    InstanceGroup,
    InstancePreference,
    OutputDataConfig,
    ProcessingInput,
    ProcessingOutput,
    ProcessingS3Input,
    ProcessingS3Output,
    ResourceConfig,
    S3DataSource,
    StoppingCondition,
)
from sagemaker.core.training.configs import TrainingJobCompute
from sagemaker.core.utils.exceptions import FailedStatusError
from sagemaker.core.workflow.pipeline_context import PipelineSession
from sagemaker.train import ModelTrainer
from sagemaker.train.common import TrainingType
from sagemaker.train.configs import (
    CheckpointConfig,
    Compute,
    InputData,
    Networking,
    SourceCode,
    Tag,
    TensorBoardOutputConfig,
)
from sagemaker.train.distributed import MPI, DistributedConfig, Torchrun
from sagemaker.train.model_trainer import Mode
from sagemaker.train.tuner import HyperparameterTuner

import public_examples
from trainmaster import QueueBypassWarning, QueueSession

pytestmark = pytest.mark.usefixtures("deployed")
CPU = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.0.0-cpu-py310"
HUGGING_FACE = (
    "763104351884.dkr.ecr.us-east-1.amazonaws.com/"
    "huggingface-pytorch-training:2.0.0-transformers4.28.1-gpu-py310-cu118-ubuntu20.04"
)
NOVA = "123456789012.dkr.ecr.us-west-2.amazonaws.com/nova-training:latest"
ADAPTER = "training-adapter-for-nemo"
HYPERPARAMETERS = {
    "integer": 1,
    "boolean": True,
    "float": 3.14,
    "string": "Hello World",
    "list": [1, 2, 3],
    "dict": {"string": "value", "list": [1, 2, 3], "dict": {"key": "value"}, "boolean": True},
}
CHECK_HYPERPARAMETERS = f"""
import json, os
assert json.loads(os.environ["SM_HPS"]) == json.loads({json.dumps(json.dumps(HYPERPARAMETERS))})
print("trained with them")
"""
DRIVER = """
import json, os, subprocess, sys
assert json.loads(os.environ["SM_DISTRIBUTED_CONFIG"])["process_count_per_node"] == 2
assert os.environ["SM_SOURCE_DIR"] == "/opt/ml/input/data/code"
subprocess.run([sys.executable, os.environ["SM_ENTRY_SCRIPT"]], check=True)
"""
RECIPE = {
    "run": {"name": "sft", "model_type": "amazon.nova-lite", "model_name_or_path": "nova-lite/prod", "replicas": 1},
    "training_config": {"learning_rate": 1e-5, "num_epochs": 3, "batch_size": 4, "warmup_steps": 100},
}


class Example:
    """The session of an example, and what came of its requests."""

    def __init__(self) -> None:
        self.recorder = public_examples.Recorder()
        self.session = QueueSession(self.recorder.session)
        self.role = get_execution_role(self.session)

    def data(self, *channels: str) -> dict[str, str]:
        return public_examples.data(self.recorder.session, *channels)

    def completed(self, trainer: ModelTrainer, printed: str = public_examples.RAN) -> dict[str, Any]:
        """Require that the job completed, that its log has a text, and that it is found again."""
        described = public_examples.check_completed(self.session.queue, self.recorder.request)
        job = trainer._latest_training_job
        job.refresh()
        found = TrainingJob.get(job.training_job_name, session=self.session.boto_session)
        model = described["ModelArtifacts"]["S3ModelArtifacts"]
        assert [each.model_artifacts.s3_model_artifacts for each in (job, found)] == [model, model]
        assert public_examples.has_printed(job.training_job_name, printed)
        return described


@pytest.fixture
def example(deployed: None) -> Example:
    return Example()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Write a training script below the working directory; gives its folder."""
    monkeypatch.chdir(tmp_path)

    def write(name: str = "train.py", folder: str = "source", text: str = public_examples.TRAIN) -> str:
        public_examples.script(tmp_path / folder, name, text)
        return folder

    return write


def test_a_command(example: Example) -> None:
    trainer = ModelTrainer(
        training_image=CPU,
        source_code=SourceCode(command="echo 'Hello World'"),
        base_job_name="model-trainer-basic-execution",
        sagemaker_session=example.session,
    )
    trainer.train()
    assert example.completed(trainer, "Hello World")["ResourceConfig"]["InstanceType"] == "ml.m5.xlarge"


def test_script_mode_with_requirements(example: Example, source: Callable[..., str]) -> None:
    folder = source("custom_script.py", "basic-script-mode")
    public_examples.script(Path(folder), "requirements.txt", "")
    trainer = ModelTrainer(
        training_image=CPU,
        source_code=SourceCode(source_dir=folder, requirements="requirements.txt", entry_script="custom_script.py"),
        base_job_name="model-trainer-script-mode",
        sagemaker_session=example.session,
    )
    trainer.train()
    example.completed(trainer)


@pytest.mark.parametrize("form", [json.dumps, yaml.safe_dump])
def test_hyperparameters_in_a_file(example: Example, source: Callable[..., str], form: Callable[[Any], str]) -> None:
    name = f"hyperparameters.{'json' if form is json.dumps else 'yaml'}"
    folder = source(text=CHECK_HYPERPARAMETERS)
    public_examples.script(Path(folder), name, form(HYPERPARAMETERS))
    trainer = ModelTrainer(
        sagemaker_session=example.session,
        training_image=CPU,
        hyperparameters=f"{folder}/{name}",
        source_code=SourceCode(source_dir=folder, entry_script="train.py"),
        base_job_name="hp-contract-hyperparameter",
    )
    trainer.train()
    example.completed(trainer)


def test_custom_driver(example: Example, source: Callable[..., str]) -> None:
    source("driver.py", "custom_drivers", DRIVER)

    class CustomDriver(DistributedConfig):  # type: ignore[misc]
        process_count_per_node: int = 2

        @property
        def driver_dir(self) -> str:
            return "custom_drivers"

        @property
        def driver_script(self) -> str:
            return "driver.py"

    trainer = ModelTrainer(
        sagemaker_session=example.session,
        training_image=CPU,
        hyperparameters={"epochs": 10},
        source_code=SourceCode(source_dir=source("entry_script.py", "scripts"), entry_script="entry_script.py"),
        distributed=CustomDriver(process_count_per_node=2),
        base_job_name="custom-distributed-driver",
    )
    trainer.train()
    example.completed(trainer)


def test_a_torchrun_command_with_a_warm_pool(example: Example, source: Callable[..., str]) -> None:
    trainer = ModelTrainer(
        training_image=HUGGING_FACE,
        compute=Compute(
            instance_count=1,
            instance_type="ml.p4d.24xlarge",
            volume_size_in_gb=96,
            keep_alive_period_in_seconds=3600,
        ),
        environment={"FI_PROVIDER": "efa", "NCCL_DEBUG": "WARN"},
        hyperparameters={"dataset_path": "/opt/ml/input/data/dataset", "cache_dir": None, "learning_rate": 5e-5},
        source_code=SourceCode(
            source_dir=source("run_clm_no_trainer.py", "distributed-training/scripts"),
            command="torchrun --nnodes 1 \
                --nproc_per_node 2 \
                --master_addr algo-1 \
                --master_port 7777 \
                --node_rank $SM_CURRENT_HOST_RANK \
                run_clm_no_trainer.py",
        ),
        base_job_name="model-trainer-distributed-commands",
        sagemaker_session=example.session,
    )
    channel = InputData(channel_name="dataset", data_source=example.data("dataset")["dataset"])
    trainer.train(input_data_config=[channel], wait=False)
    trainer._latest_training_job.wait(poll=1)
    assert example.completed(trainer)["ResourceConfig"]["KeepAlivePeriodInSeconds"] == 3600


def test_torchrun_on_two_instances(example: Example, source: Callable[..., str]) -> None:
    trainer = ModelTrainer(
        training_image=HUGGING_FACE,
        compute=Compute(instance_count=2, instance_type="ml.p4d.24xlarge", volume_size_in_gb=96),
        hyperparameters={"num_train_epochs": 1, "fsdp": "full_shard auto_wrap"},
        source_code=SourceCode(
            source_dir=source("run_clm_no_trainer.py", "distributed-training/scripts"),
            entry_script="run_clm_no_trainer.py",
        ),
        distributed=Torchrun(),
        base_job_name="model-trainer-distributed-abstraction",
        sagemaker_session=example.session,
    )
    channel = InputData(channel_name="dataset", data_source=example.data("dataset")["dataset"])
    trainer.train(input_data_config=[channel], wait=False)
    trainer._latest_training_job.wait(poll=1)
    assert example.completed(trainer)["ResourceConfig"]["InstanceCount"] == 2


def test_xgboost_with_resources(example: Example) -> None:
    job = TrainingJob.create(
        training_job_name="xgboost-churn",
        hyper_parameters={"max_depth": "5", "objective": "binary:logistic", "num_round": "100"},
        algorithm_specification=AlgorithmSpecification(
            training_image=image_uris.retrieve(framework="xgboost", region="us-east-1", version="1.7-1"),
            training_input_mode="File",
        ),
        role_arn=example.role,
        input_data_config=[
            Channel(
                channel_name=name,
                content_type="csv",
                data_source=DataSource(
                    s3_data_source=S3DataSource(
                        s3_data_type="S3Prefix", s3_uri=uri, s3_data_distribution_type="FullyReplicated"
                    )
                ),
            )
            for name, uri in example.data("train", "validation").items()
        ],
        output_data_config=OutputDataConfig(s3_output_path="s3://examples"),
        resource_config=ResourceConfig(instance_type="ml.m4.xlarge", instance_count=1, volume_size_in_gb=30),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
        session=example.session.boto_session,
    )
    job.wait()
    assert job.training_job_status == "Completed"
    public_examples.check_completed(example.session.queue, example.recorder.request)


def test_neural_topic_model(example: Example) -> None:
    trainer = ModelTrainer(
        training_image=image_uris.retrieve(framework="ntm", region="us-east-1"),
        role=example.role,
        compute=Compute(instance_count=2, instance_type="ml.c4.xlarge"),
        hyperparameters={"num_topics": "20", "feature_dim": "2000", "mini_batch_size": "128", "epochs": "100"},
        sagemaker_session=example.session,
    )
    uris = example.data("train", "validation")
    sharded = S3DataSource(s3_data_type="S3Prefix", s3_uri=uris["train"], s3_data_distribution_type="ShardedByS3Key")
    trainer.train(
        input_data_config=[
            InputData(channel_name="train", data_source=sharded, content_type="text/csv"),
            InputData(channel_name="validation", data_source=uris["validation"], content_type="text/csv"),
        ],
        wait=True,
        logs=True,
    )
    assert example.completed(trainer, public_examples.SIMULATED)["ResourceConfig"]["InstanceCount"] == 2


@pytest.mark.parametrize(
    ("counts", "total"), [({"instance_count": 2}, 2), ({}, 2)], ids=["one count", "a count for each"]
)
def test_instance_preferences(example: Example, counts: dict[str, int], total: int) -> None:
    own = {"ml.p5.48xlarge": 2, "ml.p4d.24xlarge": 4}
    preferences = [
        InstancePreference(instance_type=name)
        if counts
        else InstancePreference(instance_type=name, instance_count=count)
        for name, count in own.items()
    ]
    trainer = ModelTrainer(
        base_job_name="instance-prefs-example",
        training_image=CPU,
        role=example.role,
        compute=Compute(instance_preferences=preferences, volume_size_in_gb=500, **counts),
        output_data_config=OutputDataConfig(s3_output_path="s3://examples/instance-preferences"),
        sagemaker_session=example.session,
    )
    trainer.train(
        input_data_config=[InputData(channel_name="train", data_source=example.data("train")["train"])], wait=False
    )
    trainer._latest_training_job.wait(poll=1)
    config = example.completed(trainer, public_examples.SIMULATED)["ResourceConfig"]
    assert (config["SelectedInstanceType"], config["SelectedInstanceCount"]) == ("ml.p5.48xlarge", total)


def test_recipe_with_overrides(example: Example, source: Callable[..., str]) -> None:
    source("my_nova_recipe.yaml", ".", yaml.safe_dump(RECIPE))
    trainer = ModelTrainer.from_recipe(
        training_recipe="./my_nova_recipe.yaml",
        compute=Compute(instance_type="ml.p5.48xlarge", instance_count=1),
        training_image=NOVA,
        recipe_overrides={"run": {"name": "experiment-42"}, "training_config": {"learning_rate": 2e-5}},
        sagemaker_session=example.session,
        role=example.role,
    )
    assert trainer.get_resolved_recipe()["training_config"]["learning_rate"] == 2e-5
    trainer.train()
    assert example.completed(trainer, public_examples.SIMULATED)["AlgorithmSpecification"]["TrainingImage"] == NOVA


def test_hyperpod_recipe_from_git(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "fine-tuning/deepseek/hf_deepseek_r1_distilled_llama_8b_seq8k_gpu_fine_tuning"
    recipe = {
        "run": {"name": "llama-8b", "results_dir": "results"},
        "trainer": {"devices": 8, "num_nodes": 1},
        "exp_manager": {"exp_dir": None, "explicit_log_dir": None},
        "model": {
            "model_type": "deepseek_llamav3",
            "hf_model_name_or_path": None,
            "data": {"use_synthetic_data": False},
        },
    }
    path = f"recipes_collection/recipes/{name}.yaml"
    recipes, adapter = (f"https://github.com/aws/sagemaker-{each}.git" for each in ("hyperpod-recipes", ADAPTER))
    repositories = {
        recipes: public_examples.repository(tmp_path / "recipes", path, yaml.safe_dump(recipe)),
        adapter: public_examples.repository(tmp_path / "adapter", "examples/deepseek/deepseek_pretrain.py"),
    }
    for variable, value in public_examples.cloned_from(repositories).items():
        monkeypatch.setenv(variable, value)
    trainer = ModelTrainer.from_recipe(
        sagemaker_session=example.session,
        training_image="658645717510.dkr.ecr.us-west-2.amazonaws.com/smdistributed-modelparallel:2.4.1-gpu-py311-cu121",
        training_recipe=name,
        recipe_overrides={
            "run": {"results_dir": "/opt/ml/model"},
            "exp_manager": {"exp_dir": "/opt/ml/output/", "explicit_log_dir": "/opt/ml/output/tensorboard"},
            "model": {"hf_model_name_or_path": "deepseek-ai/example", "data": {"use_synthetic_data": True}},
        },
        compute=Compute(instance_type="ml.p5.48xlarge", keep_alive_period_in_seconds=3600),
        base_job_name="deepseek",
    ).with_tensorboard_output_config(
        TensorBoardOutputConfig(s3_output_path="s3://examples/tensorboard", local_path="/opt/ml/output/tensorboard")
    )
    trainer.train()
    assert example.completed(trainer)["TensorBoardOutputConfig"]["LocalPath"] == "/opt/ml/output/tensorboard"


def test_supervised_fine_tuning_on_instances(example: Example) -> None:
    from sagemaker.train import SFTTrainer  # its import needs the Region that a fixture sets

    data = example.data("sft")["sft"]
    s3 = example.recorder.session.client("s3")
    s3.put_object(Bucket="examples", Key="hub/recipe.yaml", Body=yaml.safe_dump(RECIPE).encode())
    overrides = {"learning_rate": {"default": 1e-5, "type": "float", "min": 1e-6, "max": 1e-3}}
    s3.put_object(Bucket="examples", Key="hub/overrides.json", Body=json.dumps(overrides).encode())
    recipe = {
        "Name": "sft",
        "RecipeFilePath": "sft.yaml",
        "CustomizationTechnique": "SFT",
        "Peft": "LORA",
        "SmtjRecipeTemplateS3Uri": "s3://examples/hub/recipe.yaml",
        "SmtjOverrideParamsS3Uri": "s3://examples/hub/overrides.json",
        "SmtjImageUri": NOVA,
        "SupportedInstanceTypes": ["ml.p5.48xlarge"],
    }
    answer_hub(example, {"RecipeCollection": [recipe]})
    trainer = SFTTrainer(
        model="amazon.nova-2-lite-v1",
        training_type=TrainingType.LORA,
        training_dataset=f"{data}/part-0",
        s3_output_path="s3://examples/sft-smtj/output",
        compute=TrainingJobCompute(instance_type="ml.p5.48xlarge", instance_count=4),
        role=example.role,
        base_job_name="sft-smtj",
        sagemaker_session=example.session,
    )
    trainer.hyperparameters.learning_rate = 5e-6
    job = trainer.train(wait=False)
    job.wait(poll=1)
    described = public_examples.check_completed(example.session.queue, example.recorder.request)
    assert described["ResourceConfig"]["InstanceCount"] == 4


def answer_hub(example: Example, document: dict[str, Any]) -> None:
    """Answer what the SDK looks up in SageMaker's public hub, which the local stack does not have."""
    answer = {
        "HubContentArn": "arn:aws:sagemaker:us-east-1:aws:hub-content/SageMakerPublicHub/Model/example/1.0.0",
        "HubContentName": "example",
        "HubContentType": "Model",
        "HubContentVersion": "1.0.0",
        "HubName": "SageMakerPublicHub",
        "HubArn": "arn:aws:sagemaker:us-east-1:aws:hub/SageMakerPublicHub",
        "DocumentSchemaVersion": "2.3.0",
        "HubContentStatus": "Available",
        "CreationTime": datetime(2026, 1, 1, tzinfo=UTC),
        "HubContentDocument": json.dumps(document),
    }
    example.recorder.answers["DescribeHubContent"] = answer


def test_jumpstart(example: Example) -> None:
    s3 = example.recorder.session.client("s3")
    uris = example.data("training", "model")
    s3.put_object(Bucket="examples", Key="jumpstart/code/transfer_learning.py", Body=public_examples.TRAIN.encode())
    document = {
        "ModelTypes": ["OPEN_WEIGHTS"],
        "Url": "https://example.com",
        "TrainingSupported": True,
        "IncrementalTrainingSupported": True,
        "GatedBucket": False,
        "Hyperparameters": [{"Name": "epochs", "Type": "int", "Default": "3", "Scope": "algorithm"}],
        "TrainingScriptUri": "s3://examples/jumpstart/code/",
        "TrainingEcrUri": HUGGING_FACE,
        "TrainingArtifactUri": f"{uris['model']}/",
        "DefaultTrainingInstanceType": "ml.p3.2xlarge",
        "SupportedTrainingInstanceTypes": ["ml.p3.2xlarge"],
        "TrainingVolumeSize": 50,
        "TrainingEnableNetworkIsolation": True,
        "DefaultTrainingDatasetUri": f"{uris['training']}/",
        "TrainingInstanceTypeVariants": {"Aliases": {}, "Variants": {}},
    }
    answer_hub(example, document)
    trainer = ModelTrainer.from_jumpstart_config(
        jumpstart_config=JumpStartConfig(model_id="huggingface-spc-bert-base-cased", accept_eula=False),
        base_job_name="js-training-bert",
        hyperparameters={"epochs": 1, "learning_rate": 5e-5, "train_batch_size": 32},
        sagemaker_session=example.session,
    )
    trainer.train()
    described = example.completed(trainer)
    assert {each["ChannelName"] for each in described["InputDataConfig"]} >= {"training", "model", "code"}


def shallow(example: Example, source: Callable[..., str], **changes: Any) -> dict[str, Any]:
    """Train as the SDK's own tests of submission do; gives SageMaker's description."""
    folder = source()
    public_examples.script(Path(folder), "requirements.txt", "")
    arguments = {
        "sagemaker_session": example.session,
        "training_image": CPU,
        "source_code": SourceCode(source_dir=folder, requirements="requirements.txt", entry_script="train.py"),
        "compute": Compute(instance_type="ml.m5.xlarge", instance_count=1),
        "stopping_condition": StoppingCondition(max_runtime_in_seconds=3600),
        "base_job_name": "shallow",
    }
    trainer = ModelTrainer(**arguments | changes)
    channels = [
        InputData(channel_name=name, data_source=uri, content_type="application/jsonlines")
        for name, uri in example.data("train", "validation").items()
    ]
    trainer.train(input_data_config=channels, logs=False)
    return example.completed(trainer)


def test_spot_with_checkpoints(example: Example, source: Callable[..., str]) -> None:
    described = shallow(
        example,
        source,
        compute=Compute(instance_type="ml.m5.xlarge", instance_count=1, enable_managed_spot_training=True),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=3600, max_wait_time_in_seconds=3600),
        checkpoint_config=CheckpointConfig(s3_uri="s3://examples/checkpoints/", local_path="/opt/ml/checkpoints/"),
    )
    assert described["EnableManagedSpotTraining"] is True


@pytest.mark.parametrize("mode", ["File", "FastFile", "Pipe"])
def test_input_modes(example: Example, source: Callable[..., str], mode: str) -> None:
    described = shallow(example, source, training_input_mode=mode)
    assert described["AlgorithmSpecification"]["TrainingInputMode"] == mode


def test_mpi(example: Example, source: Callable[..., str]) -> None:
    compute = Compute(instance_type="ml.m5.xlarge", instance_count=2)
    if shutil.which("mpirun"):
        described = shallow(example, source, compute=compute, distributed=MPI())
    else:
        with pytest.raises(FailedStatusError, match="this machine lacks mpirun"):
            shallow(example, source, compute=compute, distributed=MPI())
        described = public_examples.check_completed(example.session.queue, example.recorder.request, "Failed")
    assert described["ResourceConfig"]["InstanceCount"] == 2


def test_isolated_network_with_encryption_and_tags(example: Example, source: Callable[..., str]) -> None:
    described = shallow(
        example,
        source,
        networking=Networking(enable_network_isolation=True, enable_inter_container_traffic_encryption=True),
        environment={"MY_SETTING": "value"},
        tags=[Tag(key="Purpose", value="shallow-integ-test")],
    )
    assert described["EnableNetworkIsolation"] is True


def test_heterogeneous_cluster(example: Example, source: Callable[..., str]) -> None:
    groups = [
        InstanceGroup(instance_group_name="data_group", instance_type="ml.c5.xlarge", instance_count=1),
        InstanceGroup(instance_group_name="dnn_group", instance_type="ml.m4.xlarge", instance_count=1),
    ]
    described = shallow(example, source, compute=Compute(instance_groups=groups, volume_size_in_gb=10))
    assert len(described["ResourceConfig"]["InstanceGroups"]) == 2


def test_pipeline_bypasses_the_queue(example: Example) -> None:
    # These need a Region when they are imported.
    from sagemaker.mlops.workflow.pipeline import Pipeline
    from sagemaker.mlops.workflow.steps import TrainingStep

    trainer = ModelTrainer(
        training_image=CPU,
        compute=Compute(instance_type="ml.m5.xlarge", instance_count=1),
        base_job_name="v3-job-sklearn-train-job",
        sagemaker_session=PipelineSession(example.recorder.session),
        hyperparameters={"objective": "reg:linear", "num_round": 50},
        input_data_config=[InputData(channel_name="train", data_source="s3://examples/data/train")],
        role=example.role,
    )
    step = TrainingStep(name="TrainModel", step_args=trainer.train())
    pipeline = Pipeline(name="pipeline-v3", steps=[step], sagemaker_session=example.session)
    with pytest.warns(QueueBypassWarning, match="steps of a pipeline"):
        pipeline.upsert(role_arn=example.role)
    with pytest.warns(QueueBypassWarning, match="steps of a pipeline"):
        pipeline.start()
    assert example.recorder.requests == []


def test_tuner_bypasses_the_queue(example: Example, source: Callable[..., str]) -> None:
    trainer = ModelTrainer(
        training_image=CPU,
        source_code=SourceCode(source_dir=source("mnist.py"), entry_script="mnist.py"),
        compute=Compute(instance_type="ml.m5.xlarge", instance_count=1, volume_size_in_gb=30),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=3600),
        hyperparameters={"epochs": 1, "backend": "gloo"},
        sagemaker_session=example.session,
        role=example.role,
        base_job_name="hyperparameter-tuning",
    )
    tuner = HyperparameterTuner(
        model_trainer=trainer,
        objective_metric_name="average test loss",
        hyperparameter_ranges={
            "lr": ContinuousParameter(0.001, 0.1),
            "batch-size": CategoricalParameter([32, 64, 128, 256, 512]),
        },
        metric_definitions=[{"Name": "average test loss", "Regex": r"Test set: Average loss: ([0-9\.]+)"}],
        max_jobs=3,
        max_parallel_jobs=2,
        strategy="Random",
        objective_type="Minimize",
        early_stopping_type="Auto",
    )
    channel = InputData(channel_name="training", data_source=example.data("training")["training"])
    with pytest.warns(QueueBypassWarning, match="Submit each trial to the queue"):
        tuner.tune(inputs=[channel], wait=False)
    assert tuner.describe().hyper_parameter_tuning_job_status
    assert example.recorder.requests == []


def test_mlflow(example: Example, source: Callable[..., str]) -> None:
    folder = source(folder="mlflow")
    public_examples.script(Path(folder), "requirements.txt", "")
    trainer = ModelTrainer(
        training_image=CPU,
        source_code=SourceCode(source_dir=folder, entry_script="train.py", requirements="requirements.txt"),
        base_job_name="mlflow-train",
        sagemaker_session=example.session,
    )
    trainer.train()
    example.completed(trainer)


def test_processing_bypasses_the_queue(example: Example, source: Callable[..., str]) -> None:
    from sagemaker.core.processing import ScriptProcessor  # its import needs the Region that a fixture sets

    source("preprocess.py", "code")
    processor = ScriptProcessor(
        image_uri=image_uris.retrieve(
            framework="sklearn", region="us-east-1", version="1.2-1", py_version="py3", instance_type="ml.m5.xlarge"
        ),
        instance_type="ml.m5.xlarge",
        instance_count=1,
        base_job_name="v3-job-sklearn-preprocess-job",
        sagemaker_session=example.session,
        role=example.role,
    )
    uri = example.data("input")["input"]
    with pytest.warns(QueueBypassWarning, match="Processing jobs bypass the queue"):
        processor.run(
            wait=False,
            inputs=[
                ProcessingInput(
                    input_name="input-1",
                    s3_input=ProcessingS3Input(
                        s3_uri=uri,
                        local_path="/opt/ml/processing/input",
                        s3_data_type="S3Prefix",
                        s3_input_mode="File",
                        s3_data_distribution_type="ShardedByS3Key",
                    ),
                )
            ],
            outputs=[
                ProcessingOutput(
                    output_name="train",
                    s3_output=ProcessingS3Output(
                        s3_uri="s3://examples/pipeline-v3/train",
                        local_path="/opt/ml/processing/train",
                        s3_upload_mode="EndOfJob",
                    ),
                )
            ],
            code="code/preprocess.py",
            arguments=["--input-data", uri],
        )
    assert example.recorder.requests == []


def test_local_mode_bypasses_the_queue(example: Example, source: Callable[..., str], tmp_path: Path) -> None:
    """Local containers are Docker's: the queue gets no request."""
    folder = source("local_training_script.py")
    trainer = ModelTrainer(
        training_image=CPU,
        sagemaker_session=example.session,
        source_code=SourceCode(source_dir=folder, entry_script="local_training_script.py"),
        compute=Compute(instance_type="local_cpu", instance_count=1),
        input_data_config=[InputData(channel_name="train", data_source=folder)],
        base_job_name="local_mode_single_container_local_data",
        training_mode=Mode.LOCAL_CONTAINER,
        local_container_root=str(tmp_path),
    )
    with pytest.raises(Exception, match="Failed to run docker"):
        trainer.train()
    assert example.recorder.requests == []


def test_remote_function(example: Example) -> None:
    from sagemaker.core.remote_function import remote  # its import needs the Region that a fixture sets

    @remote(
        instance_type="ml.m5.4xlarge",
        image_uri="000000000000.dkr.ecr.us-east-1.amazonaws.com/example:1",
        sagemaker_session=example.session,
        role=example.role,
    )
    def divide(x: float, y: float) -> float:
        return x / y

    assert divide(3, 2) == 1.5
    public_examples.check_completed(example.session.queue, example.recorder.request)


def test_remote_executor_with_a_warm_pool(example: Example) -> None:
    from sagemaker.core.remote_function import RemoteExecutor  # its import needs the Region that a fixture sets

    def divide(x: float, y: float) -> float:
        return x / y

    with RemoteExecutor(
        max_parallel_jobs=1,
        keep_alive_period_in_seconds=30,
        instance_type="ml.m5.xlarge",
        image_uri="000000000000.dkr.ecr.us-east-1.amazonaws.com/example:1",
        sagemaker_session=example.session,
        role=example.role,
    ) as executor:
        futures = [executor.submit(divide, 3, 2), executor.submit(divide, 8, 2)]
    assert [future.result() for future in futures] == [1.5, 4.0]
    assert len(example.recorder.requests) == 2
    for request in example.recorder.requests:
        public_examples.check_completed(example.session.queue, request)
