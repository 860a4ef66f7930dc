"""Carries out placements: volumes, binds, gangs as units, and the handling of failures."""
