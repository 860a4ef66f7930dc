"""Load generators, each with an independent check of the placements."""
