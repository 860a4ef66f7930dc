"""The names of columns for devices, which are resources of the engine that no object of the API names."""

SET = "devices:"
"""Of columns that stand for sets of devices."""
COPIES = "device-sets:"
"""Of columns that stand for kinds of pods."""
SERVED = "device-resources:"
"""Of columns that stand for devices which serve an extended resource, also where a device plugin does."""
PREFIXES = (SET, COPIES, SERVED)


def displayed(resource: str) -> str:
    """The name of a resource of the engine as users are told it."""
    if resource.startswith(SET):
        return f"devices of class {resource.removeprefix(SET).partition(':')[0] or 'any'}"
    if resource.startswith(SERVED):
        return f"devices for {resource.removeprefix(SERVED)}"
    return "devices for all of its claims" if resource.startswith(COPIES) else resource
