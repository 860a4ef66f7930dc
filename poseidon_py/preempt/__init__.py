"""Carries out preemptions and migrations: deletes victims, nominates the pending pods that wait for their nodes, and
evicts pods that cost less elsewhere."""
