"""Commands that list what a running scheduler knows."""
