"""Reports to users: events, conditions, the status of PodGroups."""
