"""Image jobs: what one asks for, how an image is cut, and what an endpoint can take.

The guide is OversightML ModelRunner's "Scheduling and Throttling". Values and arithmetic only: no image is read here.
"""
