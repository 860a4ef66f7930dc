"""The components for jobs as the scheduler observes them: around the tracker, what reports to hooks, and what suspends
and resumes their owners."""
