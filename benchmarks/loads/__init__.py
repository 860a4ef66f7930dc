"""Load generators, each with an independent judge of what became of its tasks."""
