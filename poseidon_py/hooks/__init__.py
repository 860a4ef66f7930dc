"""Calls HTTP endpoints on transitions of state machines, at least once and in the order of each job."""
