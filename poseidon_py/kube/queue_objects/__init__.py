"""The fields of objects that describe queues, of several projects: one module for each project."""
