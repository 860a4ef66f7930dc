"""The bridge: everything that knows Kubernetes, and nothing that knows flow."""
