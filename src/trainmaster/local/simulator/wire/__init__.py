"""The simulator's API: protocol, server, client."""
