"""What nodes know of each other: announcements, who watches, heartbeats."""
