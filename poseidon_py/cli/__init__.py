"""The `poseidon` command: run the scheduler, and query a running one."""
