"""Devices of resource.k8s.io: what slices offer, what claims ask for, and which devices they get. Pure, no I/O."""
