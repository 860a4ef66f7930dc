"""Builds a flow network from costs and capacities, and turns its flow into counts of tasks on nodes."""
