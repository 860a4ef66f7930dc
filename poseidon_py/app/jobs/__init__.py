"""The components for jobs as the scheduler observes them: around the tracker, and what reports to hooks."""
