"""The demonstration: the article's four jobs on the real stack, with real local processes as training scripts.

Development only. It must show what the queue says, never what it should say.
"""
