"""Pods and nodes as messages of the contract; pure, no I/O."""
