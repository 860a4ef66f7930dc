"""Which running tasks leave so that waiting ones fit: victims, whole gangs of them, and tasks that move."""
