"""Types of the API's responses."""
