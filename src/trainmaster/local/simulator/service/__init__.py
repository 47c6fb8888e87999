"""The simulated service: state, lifecycle and rules of training jobs."""
