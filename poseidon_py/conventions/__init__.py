"""What becomes of each field, label and annotation of the conventions that are read: the table, and lookups in it."""
