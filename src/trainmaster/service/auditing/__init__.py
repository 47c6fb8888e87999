"""Records who changes what, and lists it."""
