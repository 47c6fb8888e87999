"""Cost of passes and jobs: planning time, DynamoDB units and calls by the length of the queue."""
