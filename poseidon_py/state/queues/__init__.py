"""Queues as several projects declare them, the tree that they make, and the queue of each pod."""
