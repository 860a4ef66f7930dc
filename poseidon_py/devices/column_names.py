"""How the names of columns for devices begin: they are resources of the engine that no user knows."""

SET = "devices:"
"""Of columns that stand for sets of devices."""
COPIES = "device-sets:"
"""Of columns that stand for kinds of pods."""
SERVED = "device-resources:"
"""Of columns that stand for devices which serve an extended resource, also where a device plugin does."""
PREFIXES = (SET, COPIES, SERVED)
