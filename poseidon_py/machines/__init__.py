"""The state machines of jobs, tasks and replicas, and the one place through which their transitions pass."""
