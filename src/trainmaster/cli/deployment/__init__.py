"""Commands that deploy the queue and examine it."""
