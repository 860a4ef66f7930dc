"""From waiting tasks to nodes: solve, keep what fits, and again until nothing more fits."""
