"""The simulator's API: protocol, server, clients."""
