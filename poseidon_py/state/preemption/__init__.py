"""Who may preempt which pods."""
