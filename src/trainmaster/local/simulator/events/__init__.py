"""Events and logs that leave the simulator."""
