"""A synthetic cluster that speaks the Kubernetes HTTP API on loopback."""
