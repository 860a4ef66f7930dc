"""Storage objects, and what the persistent volume claims of a pod require of its node."""
