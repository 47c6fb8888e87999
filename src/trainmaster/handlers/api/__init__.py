"""The API Lambda function."""
