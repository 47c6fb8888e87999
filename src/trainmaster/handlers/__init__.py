"""The Lambda functions: each parses an event or a request, calls one use case, and renders the response.

They use services, the domain and Powertools; `bootstrap` provides the adapters.
"""

import gc

# Imports allocate hundreds of thousands of objects that live as long as the process. At Python's own threshold of 700,
# looking for garbage among them takes a twelfth of a cold start.
gc.set_threshold(50_000)
