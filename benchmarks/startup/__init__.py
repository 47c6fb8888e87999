"""Cold start of the Lambda functions, and the size of their bundles."""
