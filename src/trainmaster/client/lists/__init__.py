"""Lists of training jobs, merged from SageMaker and the queue."""
