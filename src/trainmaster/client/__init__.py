"""What users install beside their SageMaker SDK: the API client, the SDK sessions and the boto3 hook.

It speaks HTTP to the queue and must not import the service or its adapters.
"""
