"""Keeps the flow service synchronised with the store: sends changes, and all state after a restart."""
