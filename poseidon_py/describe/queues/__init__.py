"""The tree of queues in one form for all kinds, and its message for the engine. Pure."""
