"""The policies that come with the scheduler; each prices placements, one module each."""
