"""The scheduler's own page under /dashboard/: what it shows, to whom, and the files that show it."""
