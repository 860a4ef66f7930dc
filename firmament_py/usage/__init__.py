"""Measured usage of tasks and nodes."""
