"""Protocols of what the use cases need from outside, one module for each subject, in the terms of the domain.

Every implementation of a port passes the same contract suite (`tests/contract/`). A verb that may lose a race returns
False instead of raising. Every verb raises errors of `domain.errors` only; `Throttled` and `Unavailable` may pass when
the caller tries again, `NotPermitted` needs an administrator.
"""
