"""Image jobs: models behind SageMaker endpoints process images. The core never imports this package."""
