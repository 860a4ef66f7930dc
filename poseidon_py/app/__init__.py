"""Builds the bridge from its components, starts, supervises and stops them, and serves its health port."""
