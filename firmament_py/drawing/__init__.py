"""Networks of the last rounds, recorded and drawn so that they can be read."""
