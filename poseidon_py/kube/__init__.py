"""The Kubernetes API: objects as far as scheduling needs them, requests, watches, the lease."""
