"""The suites: a description (YAML) and a module that measures its cases, side by side."""
