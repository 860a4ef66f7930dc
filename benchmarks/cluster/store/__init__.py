"""Kinds, objects, versions and history, selectors, and the words of refusals."""
