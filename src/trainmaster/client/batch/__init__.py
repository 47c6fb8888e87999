"""Answers the operations of AWS Batch for SageMaker training jobs from the queue."""
