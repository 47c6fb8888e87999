"""Image jobs, whole: images looked at by models behind SageMaker endpoints. The core never imports this package."""
