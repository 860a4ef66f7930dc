"""Queues in a round: what they use, which waiting tasks their quotas admit, and whom these may preempt."""
