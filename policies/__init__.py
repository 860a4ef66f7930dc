"""The policies that are part of the scheduler, one module each."""
