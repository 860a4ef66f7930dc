"""Checks placements against the state tables, with code that is independent of the code that places."""
