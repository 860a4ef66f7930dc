"""How a command reaches the scheduler that it asks."""
