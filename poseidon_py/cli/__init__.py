"""The `poseidon` command: running the scheduler, and asking a running one."""
