"""What the scheduler serves over HTTP: probes, metrics and its state, and to whom."""
