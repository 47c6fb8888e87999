"""Replays of the last days with a draft of the settings: reads the jobs, and runs the replay as a child process."""
