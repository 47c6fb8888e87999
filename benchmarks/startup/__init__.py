"""Cold start of the Lambda functions, the size of their bundles, and the start-up of the command line."""
