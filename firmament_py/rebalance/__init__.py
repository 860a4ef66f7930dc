"""Plans of moves of running tasks, and whether new tasks would fit, on a copy of the state."""
