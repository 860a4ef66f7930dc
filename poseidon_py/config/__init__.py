"""What can be set, and how flags and the configuration file become settings."""
