"""What users read of their pods: events, conditions, the status of PodGroups."""
