"""The bridge's state of pods, nodes, volumes and gangs, and the only code that changes it."""
