"""Decides what to do about a job: its specification, its state machines, its policies. No I/O, no clock, no memory."""
