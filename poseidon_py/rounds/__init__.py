"""When a round begins, and who gets its placements."""
