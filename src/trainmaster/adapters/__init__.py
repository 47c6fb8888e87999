"""AWS services behind the ports, one service per file; each receives its client as an argument."""
