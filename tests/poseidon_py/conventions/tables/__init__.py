"""For each honoured field and key, two worlds that differ in it alone; a module for each project."""
