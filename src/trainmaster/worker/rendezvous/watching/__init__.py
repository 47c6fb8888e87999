"""Knowledge of nodes about each other: announcements, who watches, heartbeats."""
