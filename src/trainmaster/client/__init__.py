"""API client, SDK sessions and boto3 hook for users' programs. It calls the queue over HTTP, without service code."""
