"""The Lambda functions: each parses an event or a request, calls one use case, and renders the response.

They use services, the domain and Powertools; `bootstrap` provides the adapters.
"""

import gc

GARBAGE_THRESHOLD = 50_000
"""Objects that are allocated before Python looks for garbage.

Imports allocate hundreds of thousands that live as long as the process. At Python's own threshold of 700, looking for
garbage among them takes a twelfth of a cold start.
"""

gc.set_threshold(GARBAGE_THRESHOLD)
