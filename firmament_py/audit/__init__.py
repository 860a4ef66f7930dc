"""Judges placements again from the tables alone, and shares no code with what placed them."""
