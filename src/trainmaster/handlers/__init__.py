"""The Lambda functions: parse what arrives, ask one use case, render its answer.

They know services, domain and Powertools; never an adapter, which `bootstrap` puts in place.
"""
