"""Answers about gangs and groups of pods, for commands that ask a running scheduler."""
