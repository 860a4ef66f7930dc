"""Processes: the children of this one, its signals, its temporary folders."""
