"""The local web console: a server on loopback, and the page that it serves."""
