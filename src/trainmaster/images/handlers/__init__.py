"""Lambda functions and API models of image jobs."""
