"""The store on one DynamoDB table."""
