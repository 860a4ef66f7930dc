"""Plans of moves of running tasks, on a copy of the cluster state."""
