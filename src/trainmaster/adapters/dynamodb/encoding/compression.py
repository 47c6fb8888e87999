"""Compression of the texts in rows, with a dictionary of what most of them have in common.

DynamoDB charges by the kilobyte, and zlib alone saves little of a short text: the names of members and the usual values
come once. The dictionary (RFC 1950, section 2.2) has these, so that a running job takes a third of its text. A stream
names the dictionary that it was written with by its checksum, so dictionaries may be added, but never changed.
"""

from __future__ import annotations

import zlib

_COMMON = (
    # The request: members of CreateTrainingJob in the order of canonical JSON, with usual values.
    b'"AcceptEula":true,"AlgorithmName":"arn:aws:sagemaker:us-east-1:"BaseModelArn":"CollectionConfigurations":['
    b'{"CollectionName":"CollectionParameters":{"save_interval":"500"}}],"DebugHookConfig":{"HookParameters":'
    b'"DebugRuleConfigurations":[{"RuleConfigurationName":"RuleEvaluatorImage":"RuleParameters":{"rule_to_invoke":"'
    b'"DirectoryPath":"/fsx/","FileSystemAccessMode":"ro","FileSystemDataSource":{"FileSystemId":"fs-","FileSystemType"'
    b':"FSxLustre""ExperimentConfig":{"ExperimentName":"TrialComponentDisplayName":"TrialName":"InstanceGroupNames":['
    b'"InstanceGroups":[{"InstanceCount":2,"InstanceGroupName":"InstancePreferences":[{"ContainerArguments":['
    b'"ContainerEntrypoint":["/bin/bash","-c","python","-m","torchrun","train.py""MlflowConfig":{"MlflowResourceArn":"'
    b'"ModelPackageConfig":"ProfilerConfig":{"ProfilingIntervalInMilliseconds":500,"S3OutputPath":"s3://sagemaker-'
    b'us-west-2-eu-west-1-eu-central-1-ap-northeast-1-"ProfilerRuleConfigurations":["DisableProfiler":true'
    b'"RemoteDebugConfig":{"EnableRemoteDebug":true},"RetryStrategy":{"MaximumRetryAttempts":3},"ServerlessJobConfig":'
    b'"SessionChainingConfig":{"EnableSessionTagChaining":true},"TensorBoardOutputConfig":{"LocalPath":"/opt/ml/output/'
    b'tensorboard","InfraCheckConfig":{"EnableInfraCheck":true},"TrainingImageConfig":{"TrainingRepositoryAccessMode":"'
    b'"TrainingPlanArn":"arn:aws:sagemaker:us-east-1:"TrainingPlanArns":["MaxPendingTimeInSeconds":"MaxWaitTimeInSeconds"'
    b':"KeepAlivePeriodInSeconds":1800,"VolumeKmsKeyId":"arn:aws:kms:us-east-1:"KmsKeyId":"alias/"InputMode":"FastFile"'
    b'"CompressionType":"Gzip","None"},"ContentType":"application/x-parquet""text/csv""AttributeNames":['
    b'"ShuffleConfig":{"Seed":1},"ManifestFile""AugmentedManifestFile""ShardedByS3Key"'
    b'"HyperParameters":{"sagemaker_container_log_level":"20","sagemaker_instance_type":"\\"ml.p4d.24xlarge\\"",'
    b'"sagemaker_distributed_dataparallel_enabled":"true","sagemaker_torch_distributed_enabled":"sagemaker_job_name":"'
    b'"sagemaker_program":"\\"train.py\\"","sagemaker_region":"\\"us-east-1\\"","sagemaker_submit_directory":"\\"s3://'
    b'sourcedir.tar.gz\\"","epochs":"10","batch-size":"batch_size":"64","learning-rate":"learning_rate":"0.001","lr":"1e-4'
    b'"model_name":"dataset":"optimizer":"adamw","weight_decay":"0.1","warmup_steps":"1000","max_steps":"seed":"42",'
    b'"num_workers":"8","gradient_accumulation_steps":"fp16":"bf16":"true","false","None"'
    b'"Environment":{"NCCL_DEBUG":"INFO","NCCL_SOCKET_IFNAME":"eth0","FI_PROVIDER":"efa","FI_EFA_USE_DEVICE_RDMA":"1",'
    b'"PYTHONUNBUFFERED":"1","WANDB_PROJECT":"WANDB_API_KEY":"HF_TOKEN":"HF_HOME":"TOKENIZERS_PARALLELISM":"false",'
    b'"OMP_NUM_THREADS":"LOG_LEVEL":"SAGEMAKER_PROGRAM":"SAGEMAKER_SUBMIT_DIRECTORY":"MLFLOW_TRACKING_URI":"'
    b'"Tags":[{"Key":"trainmaster:priority","Value":"trainmaster:share""trainmaster:max-runtime""project""team""Name"'
    b'"VpcConfig":{"SecurityGroupIds":["sg-0"],"Subnets":["subnet-0"]}'
    b'{"AlgorithmSpecification":{"EnableSageMakerMetricsTimeSeries":true,"MetricDefinitions":[{"Name":"train:loss",'
    b'"Regex":"loss: ([0-9\\\\.]+)"},{"Name":"validation:accuracy","Regex":"accuracy=([0-9.]+)"}],'
    b'"TrainingImage":"763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.5.1-gpu-py311-cu124-ubuntu22.04-'
    b'sagemaker","TrainingInputMode":"File"},"CheckpointConfig":{"LocalPath":"/opt/ml/checkpoints","S3Uri":"s3://'
    b'checkpoints/"},"EnableInterContainerTrafficEncryption":false,"EnableManagedSpotTraining":false,'
    b'"EnableNetworkIsolation":false,"InputDataConfig":[{"ChannelName":"training","DataSource":{"S3DataSource":'
    b'{"S3DataDistributionType":"FullyReplicated","S3DataType":"S3Prefix","S3Uri":"s3://"}}},{"ChannelName":"validation"'
    b',"DataSource":{"S3DataSource":{"S3DataDistributionType":"FullyReplicated","S3DataType":"S3Prefix","S3Uri":"s3://'
    b'"OutputDataConfig":{"S3OutputPath":"s3://output"},"ResourceConfig":{"InstanceCount":1,"InstanceType":"ml.p5.48xlarge'
    b'","VolumeSizeInGB":200},"RoleArn":"arn:aws:iam::role/service-role/AmazonSageMaker-ExecutionRole-",'
    b'"StoppingCondition":{"MaxRuntimeInSeconds":86400},"Tags":[{"Key":"","Value":""}],"TrainingJobName":"'
    # The job: its members and those of attempts, and the usual lines of its history.
    b'"resources":[{"accelerators":8,"acceleratorMemoryGib":"memoryGib":"vcpus":"queueSelectsPool":true,"elastic":'
    b'{"minInstances":1,"maxInstances":8,"hook":"restart""members""custom""target":"gracefulShutdownTimeoutSeconds":'
    b'"scalingTimeoutSeconds":"faultyScaleDownTimeoutSeconds":"scaleUpSnoozeSeconds":"budget":{"maxRestarts":'
    b'"infeasible":true,"notify":["ended"],"work":["group":"maxConcurrent":"retries":{"heldBy":"after":["ifParentFails":'
    b'"preemptionOverrides":[null,null,null,"notBefore":"deadline":"failures":{"capacity":1,"service":"algorithm":"spot":'
    b'"attemptTotals":{"outcomes":{"beganAt":"atWork":"longest":"served":"restarts":"savesEverySeconds":"full":['
    b'"reservation":[{"retryAt":"capacityFailures":1,"stopRequested":true,"past":[{"number":1,"units":{"outcome":"'
    b'preempted","returned","failed","stopped","reclaimed","resized","reason":"preempted for "freedFor":"stopAskedAt":'
    b'"stopSent":true,"stopCalledAt":"stoppedOutside":true,"endReportedAt":"calledAt":"refused":"savedAt":"savesEvery":'
    b'"members":[[1,"joined":"resizing":[1,2,"grow","sizedAt":"resizes":"faultySince":"wanted":"baseEndedAt":"successor":'
    b'"baseLost":"givenUp":"given":{"turnedDown":{"choices":["ml.p5.48xlarge","ml.p4d.24xlarge","ml.g5.2xlarge",'
    b'"ml.g5.12xlarge","ml.g6.48xlarge","ml.trn1.32xlarge"],"instanceType":"interruptions":1,"reclaimedAt":"warmUntil":'
    b'"preemptible":false,"maxRuntime":86400,"maxPending":"keepAlive":true,"trainingJobName":"run":"'
    b'"failure":"AlgorithmError: ExitCode 1","InternalServerError""CapacityError: Unable to provision requested ML '
    b'compute capacity","outcome":"completed","reason":"completed","endedAt":'
    b'[0,"pending","starting","preempted","preempting","held","resizing","running",null,"cancelled","failed","stopped",'
    b'"submitted by arn:aws:iam::user/"preempted","starting","resumes with 1 x ml."pending","held","held by "'
    b'"running","completed","completed",1]]}"running","preempting","preempted for ",1],"preempting","preempted",'
    b'{"demand":[{"ml.p4d.24xlarge":1}],"digest":"0123456789abcdef","share":"warmPoolKey":"'
    b'"containerImage":"763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.5.1-gpu-py311",'
    b'"checkpointed":true,"submittedBy":"arn:aws:sts::111122223333:assumed-role/","attempt":{"number":1,"units":'
    b'{"ml.p5.48xlarge":1},"createdAt":0,"launched":true,"launchedAt":0,"startedAt":60},"history":[[0,null,"pending",'
    b'"submitted by arn:aws:sts::111122223333:assumed-role/"],[0,"pending","starting","takes 1 x ml.p5.48xlarge",1],'
    b'[60,"starting","running","instances at work",1]]}'
)
_DICTIONARIES = {zlib.adler32(_COMMON): _COMMON}
_NAMES_DICTIONARY = 0x20
"""Bit of the second byte of a stream whose dictionary follows in four bytes."""


def compress(text: bytes) -> bytes:
    """Return a compressed text."""
    packer = zlib.compressobj(level=9, zdict=_COMMON)
    return packer.compress(text) + packer.flush()


def inflate(data: bytes, limit: int) -> bytes:
    """Return decompressed bytes. Raises `ValueError`, before they take memory, if they are more than `limit`."""
    data = bytes(data)
    try:
        unpacker = _unpacker(data)
        text = unpacker.decompress(data, limit + 1)
    except zlib.error as error:
        raise ValueError("the bytes are not compressed text") from error
    if len(text) > limit or not unpacker.eof:
        raise ValueError(f"the text has more than {limit} bytes, or is cut off")
    return text


def _unpacker(data: bytes) -> zlib._Decompress:
    """Return a reader of the stream. Raises `ValueError` for one with a dictionary that this release does not know."""
    if len(data) < 6 or not data[1] & _NAMES_DICTIONARY:
        return zlib.decompressobj()
    known = _DICTIONARIES.get(int.from_bytes(data[2:6], "big"))
    if known is None:
        raise ValueError("the text was compressed with a dictionary that this release does not know")
    return zlib.decompressobj(zdict=known)
