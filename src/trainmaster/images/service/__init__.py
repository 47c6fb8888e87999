"""Use cases of image jobs: intake, launch, observation and external load."""
