"""When a round begins, and where its results go."""
