"""What the cluster is now, as tables, and the only code that changes it."""
