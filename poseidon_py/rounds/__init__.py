"""The start of rounds, and the handling of their results."""
