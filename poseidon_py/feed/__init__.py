"""Tells the flow service what the cluster is like: changes as they come, everything after a restart."""
