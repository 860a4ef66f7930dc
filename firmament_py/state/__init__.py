"""The current state of the cluster as tables, and the only code that changes it."""
