"""The simulated service: state, time and rules."""
