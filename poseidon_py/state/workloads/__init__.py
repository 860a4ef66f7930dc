"""Workloads: owners of pods that can be suspended and resumed."""
