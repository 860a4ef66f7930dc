"""Reports the transitions of jobs, tasks and replicas to the hooks."""
