"""Jobs that fit only once other tasks end or move: the load, proven bounds, and an independent check of decisions."""
