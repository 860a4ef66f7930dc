"""Which devices pods need, hold and get: the state of dynamic resource allocation, by pod and node."""
