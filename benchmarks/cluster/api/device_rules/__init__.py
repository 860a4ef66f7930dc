"""What the API server sets and refuses in the objects of resource.k8s.io."""
