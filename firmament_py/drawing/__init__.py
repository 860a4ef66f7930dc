"""Networks of the last rounds, kept and drawn so that they can be read."""
