"""Reads suites, runs their cases, keeps the results."""
