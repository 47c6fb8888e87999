"""AWS services behind the ports, one service a file; each gets its client handed in and decides nothing."""
