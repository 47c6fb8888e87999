"""Events and log lines of the simulator, and their delivery."""
