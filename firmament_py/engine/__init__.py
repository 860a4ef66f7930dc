"""One cluster state, one lock and epochs, and a scheduling round from start to finish."""
