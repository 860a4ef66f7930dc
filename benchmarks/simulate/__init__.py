"""Simulated time: a trace replayed through the real engine, days of it in minutes."""
