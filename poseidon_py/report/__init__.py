"""What users read about their pods: events, conditions, the status of PodGroups."""
