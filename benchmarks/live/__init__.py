"""A live API server: filling it, what the processes cost, and a blind scheduler to compare with."""
