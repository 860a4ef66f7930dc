"""The objects that are created for a job: pods, its PodGroup, claims, and the objects of plugins. Pure."""
