"""Sessions for the SageMaker SDKs and the boto3 hook."""
