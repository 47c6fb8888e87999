"""SDK sessions and boto3 hooks that send training jobs to the queue."""
