"""Costs and capacities to a flow network, and its flow back to counts of tasks on nodes."""
