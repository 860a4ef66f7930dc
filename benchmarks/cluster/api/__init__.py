"""The verbs on whole objects with the API server's rules: defaults, validation, patches, deletion; no I/O."""
