"""When waiting tasks are expected to start: the rounds of the future, on a copy of the state."""
