"""The engine: one cluster state, one lock, epochs, and scheduling rounds."""
