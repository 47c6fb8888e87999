"""Development tools: the in-memory store, the SageMaker simulator, the local stack, the demo and the replay."""
