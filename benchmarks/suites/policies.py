"""Measures one round of the engine under each policy, on the same cluster."""

from benchmarks.suites.round import measure

__all__ = ["measure"]
