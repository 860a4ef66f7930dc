"""In which order jobs get their turn, which gangs a round places, and for whom capacity is reserved."""
