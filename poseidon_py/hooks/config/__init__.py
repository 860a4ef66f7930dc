"""The configuration of hooks: what it consists of, and how it is read from a file."""
