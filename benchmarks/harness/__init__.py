"""Reading suites, running their cases and storing the results."""
