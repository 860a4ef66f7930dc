"""The policies that come with the scheduler; one module each."""
