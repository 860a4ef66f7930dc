"""Carries placements out: volumes, binds, gangs as units, and what becomes of those that fail."""
