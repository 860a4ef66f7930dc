"""The wire contract between the bridge and the flow-graph service; imports nothing of either."""
