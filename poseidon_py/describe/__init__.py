"""Describes pods and nodes as messages of the contract. Pure, no I/O."""
