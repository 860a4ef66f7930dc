"""The settings, and how they are read from flags and the configuration file."""
