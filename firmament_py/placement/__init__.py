"""From waiting tasks to nodes: solve, keep what fits, repeat until nothing more fits."""
