"""Tables, sentences and progress displays of commands."""
