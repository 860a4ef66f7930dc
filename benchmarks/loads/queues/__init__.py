"""Rounds with queues: trees of them, reclaim between two of them, and independent checks."""
