"""Carries out preemptions: deletes victims, and nominates the pending pods that wait for their nodes."""
