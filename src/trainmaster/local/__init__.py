"""Development only: the in-memory store, the SageMaker simulator, the local stack and the demo."""
