"""Builds the scheduler from its parts, starts and stops them, and answers over HTTP what they do."""
