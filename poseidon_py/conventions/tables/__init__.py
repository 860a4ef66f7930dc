"""The rows, a module for each project."""
