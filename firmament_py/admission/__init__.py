"""In which order gangs and tasks are placed, which gangs a round places, and for which of them capacity is reserved."""
