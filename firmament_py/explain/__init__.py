"""Why tasks wait, for operators and for the events of pods."""
