"""Devices of Dynamic Resource Allocation (resource.k8s.io)."""
