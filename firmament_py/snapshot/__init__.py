"""One moment of the cluster as dense arrays, and what tasks demand of each other in it."""
