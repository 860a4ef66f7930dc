"""Keeps the flow service in step with the store: changes as they come, everything after a restart."""
