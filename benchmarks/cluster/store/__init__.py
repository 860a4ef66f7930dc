"""Kinds, objects, versions and history, selectors, and the texts of errors."""
