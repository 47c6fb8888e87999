"""The Lambda functions: parse what arrives, ask one use case, render its answer.

They know services, domain and Powertools; never an adapter, which `bootstrap` puts in place.
"""

import gc

# Imports allocate hundreds of thousands of objects that live as long as the process. At Python's own threshold of 700,
# looking for garbage among them takes a twelfth of a cold start.
gc.set_threshold(50_000)
