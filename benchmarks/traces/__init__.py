"""Traces of clusters: one internal form, generators after published analyses, readers and writers of files."""
