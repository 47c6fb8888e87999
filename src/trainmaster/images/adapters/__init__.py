"""AWS services behind the ports of image jobs."""
