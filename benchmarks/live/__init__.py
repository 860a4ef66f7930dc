"""A live API server: filling it, the CPU and memory of processes, and a blind binder to compare with."""
