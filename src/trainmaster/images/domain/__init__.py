"""Values and rules of image jobs: requests, tiling, and the capacity of endpoints.

The guide cited here is OversightML ModelRunner's "Scheduling and Throttling". No module reads an image.
"""
